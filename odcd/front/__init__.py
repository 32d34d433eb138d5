"""The HTTP front door: it limits connections, request times and the size of heads, and handles
TLS. Requests that pass are served by odcd.api."""
