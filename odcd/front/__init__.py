"""The HTTP front door: who may connect, how long a request may take to arrive, how large its head
may be, TLS. What comes through it is odcd.api's."""
