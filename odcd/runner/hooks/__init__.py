"""Programs of the operator that run before and after jobs and their tasks."""
