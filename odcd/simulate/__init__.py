"""Replays of workloads through the scheduler's own SQL, on a virtual clock and in a separate
database. No module of the daemon imports this package."""
