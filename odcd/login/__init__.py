"""Logins by an external identity: AWS confirms who signed a request, and odcd returns an API
key."""
