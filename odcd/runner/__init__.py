"""The process that forks jobs and outlives the daemon."""
