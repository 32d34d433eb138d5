"""The options of Slurm's commands as data, and the parsers of their arguments. Nothing here reads
the database."""
