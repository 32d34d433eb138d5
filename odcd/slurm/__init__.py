"""sbatch's language, parsed in this one place."""
