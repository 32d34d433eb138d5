variable "name" {
  description = "Name of the cluster, and prefix of the names of its resources."
  type        = string
}

variable "kind" {
  description = "cloudnative-pg: PostgreSQL in the cluster, three instances, with backups in a bucket. rds: RDS with a standby in a second zone."
  type        = string
  default     = "cloudnative-pg"
  validation {
    condition     = contains(["cloudnative-pg", "rds"], var.kind)
    error_message = "kind must be \"cloudnative-pg\" or \"rds\"."
  }
}

variable "kms_key_arn" {
  description = "KMS key of backups and of RDS."
  type        = string
}

variable "backup_days" {
  description = "Days to keep backups. With cloudnative-pg, no one can delete a backup before, not even an administrator of the account if lock_mode is COMPLIANCE."
  type        = number
  default     = 30
  validation {
    condition     = var.backup_days >= 7 && var.backup_days <= 35
    error_message = "backup_days must be 7 to 35, which both kinds of database can do."
  }
}

variable "lock_mode" {
  description = "Object lock of backups: GOVERNANCE (administrators with a special right can delete them) or COMPLIANCE (no one can)."
  type        = string
  default     = "GOVERNANCE"
  validation {
    condition     = contains(["GOVERNANCE", "COMPLIANCE"], var.lock_mode)
    error_message = "lock_mode must be \"GOVERNANCE\" or \"COMPLIANCE\"."
  }
}

variable "force_destroy" {
  description = "Whether `tofu destroy` also deletes backups and needs no final snapshot. Only for tests."
  type        = bool
  default     = false
}

variable "vpc_id" {
  description = "Id of the VPC; for rds."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets; for rds."
  type        = list(string)
}

variable "nodes_security_group_id" {
  description = "Security group of the nodes, from which odcd connects; for rds."
  type        = string
}

variable "rds_instance_class" {
  description = "Size of the RDS instances. odc's hot tables fit into 4 GiB of memory."
  type        = string
  default     = "db.m7g.large"
}

variable "rds_version" {
  description = "Major version of PostgreSQL on RDS, 16 or newer."
  type        = string
  default     = "17"
  validation {
    condition     = can(regex("^(1[6-9]|[2-9][0-9])$", var.rds_version))
    error_message = "rds_version must be a major version from 16 on: for example \"17\"."
  }
}

variable "rds_gib" {
  description = "Size of the RDS volume in GiB; it grows by itself to four times this size."
  type        = number
  default     = 100
  validation {
    condition     = var.rds_gib >= 20 && var.rds_gib <= 16384
    error_message = "rds_gib must be 20 to 16384."
  }
}

variable "rds_password" {
  description = "Password of the user odc on RDS. Set it with TF_VAR_database_password, never in a file. Change it here and in the Secret odc-db-app together."
  type        = string
  default     = null
  sensitive   = true
  validation {
    condition     = var.rds_password == null || can(regex("^[A-Za-z0-9_-]{24,64}$", var.rds_password))
    error_message = "rds_password must have 24 to 64 letters, digits, hyphens and underscores: for example the output of `openssl rand -hex 24`."
  }
}
