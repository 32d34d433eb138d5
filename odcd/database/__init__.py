"""The connection pool, the schema installer and backups."""
