"""Executors carry out what the database decided: as processes, as pods, or in simulation."""
