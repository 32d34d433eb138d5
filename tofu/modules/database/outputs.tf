output "backup_bucket" {
  description = "Bucket of backups; null with rds."
  value       = one(aws_s3_bucket.backup[*].bucket)
}

output "uri" {
  description = "The key uri of the Secret odc-db-app with rds; null with cloudnative-pg, whose operator creates that Secret."
  value       = local.rds == 1 ? "postgresql://odc:${var.rds_password}@${aws_db_instance.this[0].address}:5432/odc?sslmode=require" : null
  sensitive   = true
}
