"""Images that are built of a user's Dockerfile."""
