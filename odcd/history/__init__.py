"""History: PostgreSQL partitions created ahead, retention, exports and restores."""
