mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
}

variables {
  name                    = "odc-test"
  kms_key_arn             = "arn:aws:kms:us-east-2:111122223333:key/1"
  vpc_id                  = "vpc-1"
  subnet_ids              = ["subnet-a", "subnet-b"]
  nodes_security_group_id = "sg-nodes"
}

run "backups_that_no_one_can_delete" {
  command = plan
  variables {
    lock_mode = "COMPLIANCE"
  }
  assert {
    condition     = aws_s3_bucket.backup[0].object_lock_enabled && aws_s3_bucket_object_lock_configuration.backup[0].rule[0].default_retention[0].mode == "COMPLIANCE" && aws_s3_bucket_object_lock_configuration.backup[0].rule[0].default_retention[0].days == 30
    error_message = "Object lock for 30 days."
  }
  assert {
    condition     = aws_s3_bucket_public_access_block.backup[0].restrict_public_buckets && length(aws_db_instance.this) == 0
    error_message = "Private, and no RDS."
  }
}

run "rds_with_a_standby" {
  command = plan
  variables {
    kind         = "rds"
    rds_password = "0123456789abcdef0123456789abcdef"
  }
  assert {
    condition     = aws_db_instance.this[0].multi_az && aws_db_instance.this[0].storage_encrypted && !aws_db_instance.this[0].publicly_accessible && aws_db_instance.this[0].deletion_protection
    error_message = "Two zones, encrypted, private, protected."
  }
  assert {
    condition     = length(aws_s3_bucket.backup) == 0 && aws_vpc_security_group_ingress_rule.database[0].from_port == 5432
    error_message = "No bucket, and only PostgreSQL's port."
  }
}

run "rds_without_a_password_is_refused" {
  command = plan
  variables {
    kind = "rds"
  }
  expect_failures = [aws_db_instance.this]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    kind         = "mysql"
    backup_days  = 1
    lock_mode    = "NONE"
    rds_version  = "12"
    rds_password = "short"
  }
  expect_failures = [var.kind, var.backup_days, var.lock_mode, var.rds_version, var.rds_password]
}
