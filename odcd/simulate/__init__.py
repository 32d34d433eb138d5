"""Replays of workloads through the scheduler's own SQL, on a virtual clock and a database of their
own. Nothing in the daemon imports this package."""
