"""What the GPUs of jobs did: asked of Prometheus, or of NVML on this machine. The leader's work."""
