"""Two daemons and one PostgreSQL under clients, while a nemesis stops, kills, cuts off and misleads
them; what must be true afterwards. CONTRIBUTING.md describes how to run it and read its output.
"""
