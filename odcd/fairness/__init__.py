"""Limits per user, so that no user can overload the daemon for the others."""
