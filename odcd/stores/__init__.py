"""One module per subject, one typed method per SQL function."""
