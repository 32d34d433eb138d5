"""AWS: volumes and snapshots of EBS, EFS, and buckets of S3. The only importer of aiobotocore."""
