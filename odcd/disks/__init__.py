"""Home disks of dev servers: volumes and snapshots of a cloud, and storage that users share."""
