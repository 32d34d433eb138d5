mock_provider "aws" {
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-east-2:111122223333:key/mock" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  name                    = "odc-test"
  vpc_id                  = "vpc-1"
  subnets                 = { us-east-2a = "subnet-a", us-east-2b = "subnet-b" }
  nodes_security_group_id = "sg-nodes"
}

run "keys_rotate_and_files_are_encrypted_backed_up_and_elastic" {
  command = plan
  assert {
    condition     = length(aws_kms_key.this) == 3 && alltrue([for key in aws_kms_key.this : key.enable_key_rotation])
    error_message = "Three keys that rotate."
  }
  assert {
    condition     = aws_efs_file_system.this[0].encrypted && aws_efs_file_system.this[0].throughput_mode == "elastic" && length(aws_efs_mount_target.this) == 2
    error_message = "Encrypted, with elastic throughput, in each zone."
  }
  assert {
    condition     = aws_efs_backup_policy.this[0].backup_policy[0].status == "ENABLED"
    error_message = "Backed up."
  }
  assert {
    condition     = one(aws_rbin_rule.snapshots[0].resource_tags).resource_tag_key == "ManagedBy" && one(aws_rbin_rule.snapshots[0].resource_tags).resource_tag_value == "odc"
    error_message = "The Recycle Bin keeps the snapshots that odcd tags."
  }
  assert {
    condition     = output.disk_iops == 3000 && output.disk_mib_s == 125
    error_message = "What gp3 includes in its price."
  }
}

run "fast_disks" {
  command = plan
  variables {
    fast_disks = true
  }
  assert {
    condition     = output.disk_iops == 16000 && output.disk_mib_s == 1000
    error_message = "16,000 IOPS and 1,000 MB/s."
  }
}

run "without_files_and_with_history" {
  command = plan
  variables {
    shared_folders   = false
    recycle_bin_days = 0
    history_days     = 365
  }
  assert {
    condition     = length(aws_efs_file_system.this) == 0 && output.file_system_id == null && length(aws_rbin_rule.snapshots) == 0
    error_message = "No file system, no Recycle Bin."
  }
  assert {
    condition     = aws_s3_bucket_public_access_block.history[0].block_public_policy && aws_s3_bucket.history[0].bucket == "odc-test-history-111122223333"
    error_message = "A private bucket."
  }
}

run "bad_values_are_refused" {
  command = plan
  variables {
    recycle_bin_days  = 400
    history_days      = 3
    key_deletion_days = 1
  }
  expect_failures = [var.recycle_bin_days, var.history_days, var.key_deletion_days]
}
