"""odcd, the daemon that schedules jobs on GPUs."""

__version__ = "0.1.0"
