"""What only the leader runs."""
