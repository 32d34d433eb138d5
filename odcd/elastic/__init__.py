"""Elastic groups: Auto Scaling groups whose number of nodes the leader changes."""
