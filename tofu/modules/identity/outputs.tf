output "odcd_role_arn" {
  description = "Role of odcd: disks, shared folders, fence, exports."
  value       = aws_iam_role.this["odcd"].arn
}

output "backup_role_arn" {
  description = "Role of PostgreSQL's backups; null without them."
  value       = try(aws_iam_role.this["backup"].arn, null)
}
