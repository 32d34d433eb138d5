"""Loops that only the leader runs."""
