"""Slurm's commands: one small program with many names, and the folders that it is linked into."""
