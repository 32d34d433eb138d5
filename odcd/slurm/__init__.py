"""The parser for sbatch's options, scripts and environment variables."""
