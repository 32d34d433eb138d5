"""odcd, the daemon that decides who gets which GPUs when."""

__version__ = "0.1.0"
