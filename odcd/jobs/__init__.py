"""Submission and reservations: the checks that SQL cannot make."""
