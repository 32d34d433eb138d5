"""Reservations: lookup, the guided request, progress, remote commands, Jupyter Lab."""
