"""The embedded home: PostgreSQL, the lock, operating system accounts, the root helper, shutdown."""
