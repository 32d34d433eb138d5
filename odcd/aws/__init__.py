"""AWS: volumes and snapshots of EBS, EFS, buckets of S3, and Auto Scaling groups. The only importer
of aiobotocore."""
