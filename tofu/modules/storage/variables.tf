variable "name" {
  description = "Name of the cluster, and prefix of the names of its resources."
  type        = string
}

variable "vpc_id" {
  description = "Id of the VPC."
  type        = string
}

variable "subnets" {
  description = "Private subnet of each zone; each gets a mount target of the file system."
  type        = map(string)
}

variable "nodes_security_group_id" {
  description = "Security group of the nodes, which mount the file system."
  type        = string
}

variable "fast_disks" {
  description = "Disks of dev servers with 16,000 IOPS and 1,000 MB/s instead of 3,000 and 125. It adds about 100 USD per month to each volume that exists (us-east-2: 0.005 per IOPS above 3,000 and 0.04 per MB/s above 125); a volume exists while a reservation uses it."
  type        = bool
  default     = false
}

variable "shared_folders" {
  description = "An EFS file system for /shared-personal and the compiler cache."
  type        = bool
  default     = true
}

variable "backup" {
  description = "Daily backups of the file system by AWS Backup, kept for 35 days."
  type        = bool
  default     = true
}

variable "recycle_bin_days" {
  description = "Days for which a deleted snapshot of a disk can be recovered from the Recycle Bin. 0: not at all."
  type        = number
  default     = 14
  validation {
    condition     = var.recycle_bin_days >= 0 && var.recycle_bin_days <= 365
    error_message = "recycle_bin_days must be 0 (off) to 365."
  }
}

variable "history_days" {
  description = "Days to keep exported history of jobs in a bucket. 0: no such bucket."
  type        = number
  default     = 0
  validation {
    condition     = var.history_days == 0 || var.history_days >= 30
    error_message = "history_days must be 0 (off), or at least 30."
  }
}

variable "key_deletion_days" {
  description = "Days until a deleted KMS key is gone, 7 to 30. Until then the data can be saved."
  type        = number
  default     = 30
  validation {
    condition     = var.key_deletion_days >= 7 && var.key_deletion_days <= 30
    error_message = "key_deletion_days must be 7 to 30."
  }
}
