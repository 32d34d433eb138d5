"""Health checks of the host, the cluster, its pods and image builds."""
