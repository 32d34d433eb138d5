"""What `odcctl reserve` is made of: the request, what is asked for it, and what comes of it."""
