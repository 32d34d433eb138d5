"""The columns of Slurm's commands as data, and the one renderer of their tables."""
