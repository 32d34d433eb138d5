"""Usage errors, for the modules of this folder."""

from odcd.slurm.usage import Usage, fail

__all__ = ["Usage", "fail"]
