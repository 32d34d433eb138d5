"""`odcctl run --sync`: a job's copy of a folder, and its results."""
