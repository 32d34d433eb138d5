output "key_arns" {
  description = "ARN of each KMS key: disks, cluster, data."
  value       = { for name, key in aws_kms_key.this : name => key.arn }
}

output "file_system_id" {
  description = "Id of the shared file system, ODC_EFS_ID; null without one."
  value       = one(aws_efs_file_system.this[*].id)
}

output "file_system_arn" {
  description = "ARN of the shared file system; null without one."
  value       = one(aws_efs_file_system.this[*].arn)
}

output "ccache_access_point_id" {
  description = "Access point of the compiler cache; null without a file system."
  value       = one(aws_efs_access_point.ccache[*].id)
}

output "history_bucket" {
  description = "Bucket of exported history; null without one."
  value       = one(aws_s3_bucket.history[*].bucket)
}

output "disk_iops" {
  description = "IOPS of each disk, ODC_DISK_IOPS."
  value       = var.fast_disks ? 16000 : 3000
}

output "disk_mib_s" {
  description = "Throughput of each disk in MiB/s, ODC_DISK_MBPS."
  value       = var.fast_disks ? 1000 : 125
}
