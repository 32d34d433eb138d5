# Keys, the shared file system, and rules for the snapshots that odcd creates. odcd creates volumes and snapshots itself, with the tag
# ManagedBy=odc; no resource here has that tag, because odcd may delete what carries it.

data "aws_caller_identity" "me" {}

data "aws_partition" "here" {}

locals {
  root = "arn:${data.aws_partition.here.partition}:iam::${data.aws_caller_identity.me.account_id}:root"
}

resource "aws_kms_key" "this" {
  for_each = {
    disks   = "Disks of dev servers"
    cluster = "Secrets of the cluster"
    data    = "File systems, backups and databases"
  }
  description             = "${each.value} of ${var.name}"
  enable_key_rotation     = true
  deletion_window_in_days = var.key_deletion_days
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      # The account's IAM policies decide; without it, no one could change the key.
      Sid       = "Account"
      Effect    = "Allow"
      Action    = "kms:*"
      Resource  = "*"
      Principal = { AWS = local.root }
    }]
  })
  tags = { Name = "${var.name}-${each.key}" }
}

resource "aws_kms_alias" "this" {
  for_each      = aws_kms_key.this
  name          = "alias/${var.name}-${each.key}"
  target_key_id = each.value.key_id
}

# --- the shared file system

resource "aws_security_group" "files" {
  count       = var.shared_folders ? 1 : 0
  name        = "${var.name}-files"
  description = "The shared file system of ${var.name}"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-files" }
}

resource "aws_vpc_security_group_ingress_rule" "files" {
  count                        = var.shared_folders ? 1 : 0
  security_group_id            = aws_security_group.files[0].id
  referenced_security_group_id = var.nodes_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 2049
  to_port                      = 2049
}

resource "aws_efs_file_system" "this" {
  count          = var.shared_folders ? 1 : 0
  creation_token = "${var.name}-shared"
  encrypted      = true
  kms_key_id     = aws_kms_key.this["data"].arn
  # Bursting throughput is used up within a minute by five builds.
  throughput_mode = "elastic"
  lifecycle_policy {
    transition_to_ia = "AFTER_30_DAYS"
  }
  lifecycle_policy {
    transition_to_primary_storage_class = "AFTER_1_ACCESS"
  }
  tags = { Name = "${var.name}-shared" }
}

resource "aws_efs_mount_target" "this" {
  for_each        = var.shared_folders ? var.subnets : {}
  file_system_id  = aws_efs_file_system.this[0].id
  subnet_id       = each.value
  security_groups = [aws_security_group.files[0].id]
}

resource "aws_efs_backup_policy" "this" {
  count          = var.shared_folders && var.backup ? 1 : 0
  file_system_id = aws_efs_file_system.this[0].id
  backup_policy {
    status = "ENABLED"
  }
}

# The folders of users are access points that odcd creates. This one is the compiler cache of all.
resource "aws_efs_access_point" "ccache" {
  count          = var.shared_folders ? 1 : 0
  file_system_id = aws_efs_file_system.this[0].id
  root_directory {
    path = "/ccache"
    creation_info {
      owner_uid   = 65534
      owner_gid   = 65534
      permissions = "1777"
    }
  }
  tags = { Name = "${var.name}-ccache" }
}

# --- snapshots that someone deletes by mistake

resource "aws_rbin_rule" "snapshots" {
  count         = var.recycle_bin_days > 0 ? 1 : 0
  description   = "Snapshots of odc's disks"
  resource_type = "EBS_SNAPSHOT"
  resource_tags {
    resource_tag_key   = "ManagedBy"
    resource_tag_value = "odc"
  }
  retention_period {
    retention_period_value = var.recycle_bin_days
    retention_period_unit  = "DAYS"
  }
}

# --- exported history

resource "aws_s3_bucket" "history" {
  count  = var.history_days > 0 ? 1 : 0
  bucket = "${var.name}-history-${data.aws_caller_identity.me.account_id}"
}

resource "aws_s3_bucket_public_access_block" "history" {
  count                   = var.history_days > 0 ? 1 : 0
  bucket                  = aws_s3_bucket.history[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "history" {
  count  = var.history_days > 0 ? 1 : 0
  bucket = aws_s3_bucket.history[0].id
  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.this["data"].arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "history" {
  count  = var.history_days > 0 ? 1 : 0
  bucket = aws_s3_bucket.history[0].id
  rule {
    id     = "expire"
    status = "Enabled"
    filter {}
    expiration {
      days = var.history_days
    }
  }
}
