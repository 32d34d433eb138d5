"""History: PostgreSQL partitions made ahead, retention, exports and their restore."""
