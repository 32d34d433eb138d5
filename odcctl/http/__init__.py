"""Requests to the daemon: its address, the API key, one exchange, events, WebSockets."""
