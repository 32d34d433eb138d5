"""Limits per user, so that no user takes the daemon from the others."""
