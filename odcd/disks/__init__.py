"""Home disks of dev servers: volumes and snapshots of a cloud, and storage that each user's dev
servers share."""
