"""GPU usage of jobs, from Prometheus or from this machine's NVML. Runs on the leader."""
