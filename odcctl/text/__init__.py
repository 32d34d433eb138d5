"""Reading arguments and writing text for people."""
