"""odcctl, the command line of odc: it speaks HTTP to odcd and nothing else."""

__version__ = "0.1.0"
