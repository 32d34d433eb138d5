"""Logins by an identity that others vouch for: AWS says who signed, odcd gives a key for it."""
