# Backups of PostgreSQL in the cluster: a bucket whose objects cannot be deleted for backup_days.

data "aws_caller_identity" "me" {}

locals {
  backups = var.kind == "cloudnative-pg" ? 1 : 0
}

resource "aws_s3_bucket" "backup" {
  count               = local.backups
  bucket              = "${var.name}-database-${data.aws_caller_identity.me.account_id}"
  object_lock_enabled = true
  force_destroy       = var.force_destroy
}

resource "aws_s3_bucket_versioning" "backup" {
  count  = local.backups
  bucket = aws_s3_bucket.backup[0].id
  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_object_lock_configuration" "backup" {
  count  = local.backups
  bucket = aws_s3_bucket.backup[0].id
  rule {
    default_retention {
      mode = var.lock_mode
      days = var.backup_days
    }
  }
  depends_on = [aws_s3_bucket_versioning.backup]
}

resource "aws_s3_bucket_server_side_encryption_configuration" "backup" {
  count  = local.backups
  bucket = aws_s3_bucket.backup[0].id
  rule {
    bucket_key_enabled = true
    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_public_access_block" "backup" {
  count                   = local.backups
  bucket                  = aws_s3_bucket.backup[0].id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

# The backup program deletes expired backups; their old versions go a week later.
resource "aws_s3_bucket_lifecycle_configuration" "backup" {
  count  = local.backups
  bucket = aws_s3_bucket.backup[0].id
  rule {
    id     = "old-versions"
    status = "Enabled"
    filter {}
    noncurrent_version_expiration {
      noncurrent_days = 7
    }
    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
  depends_on = [aws_s3_bucket_versioning.backup]
}
