"""What makes the database's word true: processes, pods, or nothing at all."""
