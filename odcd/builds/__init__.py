"""Images built from users' Dockerfiles."""
