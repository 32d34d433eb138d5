mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_region" {
    defaults = { name = "us-east-2" }
  }
  mock_resource "aws_iam_openid_connect_provider" {
    defaults = { arn = "arn:aws:iam::111122223333:oidc-provider/example.invalid/id/1" }
  }
}

variables {
  name            = "odc-test"
  issuer          = "https://example.invalid/id/1"
  disks_key_arn   = "arn:aws:kms:us-east-2:111122223333:key/1"
  data_key_arn    = "arn:aws:kms:us-east-2:111122223333:key/2"
  file_system_arn = "arn:aws:elasticfilesystem:us-east-2:111122223333:file-system/fs-1"
  history_bucket  = "history"
  backup_bucket   = "backup"
  optional        = { files = true, history = true, backups = true }
}

run "each_role_belongs_to_one_service_account" {
  assert {
    condition = { for name, role in aws_iam_role.this : name => jsondecode(role.assume_role_policy).Statement[0].Condition.StringEquals["example.invalid/id/1:sub"] } == {
      odcd   = "system:serviceaccount:gpu-controlplane:odcd"
      backup = "system:serviceaccount:gpu-controlplane:odc-db"
    }
    error_message = "The token of another service account is refused."
  }
  assert {
    condition     = jsondecode(aws_iam_role_policy.fence[0].policy).Statement[1].Condition.StringEquals["aws:ResourceTag/odc.dev/cluster"] == "odc-test"
    error_message = "odcd powers off only nodes of its own cluster."
  }
  assert {
    condition     = one([for one in jsondecode(aws_iam_role_policy.disks.policy).Statement : one if one.Sid == "ChangeItsOwn"]).Condition.StringEquals["aws:ResourceTag/ManagedBy"] == "odc"
    error_message = "odcd changes only what it made."
  }
}

run "odcd_resizes_elastic_groups_of_its_cluster_only" {
  command = plan
  variables {
    elastic = true
  }
  assert {
    condition = jsondecode(aws_iam_role_policy.elastic[0].policy).Statement[1].Condition.StringEquals == {
      "aws:ResourceTag/odc.dev/cluster" = "odc-test"
      "aws:ResourceTag/odc.dev/elastic" = "true"
    }
    error_message = "No group of another cluster, and none that is not marked elastic."
  }
}

run "without_optional_parts" {
  command = plan
  variables {
    optional = { files = false, history = false, backups = false }
    fence    = "off"
  }
  assert {
    condition     = length(aws_iam_role_policy.files) + length(aws_iam_role_policy.history) + length(aws_iam_role_policy.backup) + length(aws_iam_role_policy.fence) + length(aws_iam_role_policy.elastic) == 0 && keys(aws_iam_role.this) == ["odcd"]
    error_message = "No rights for what does not exist."
  }
}

run "bad_values_are_refused" {
  command = plan
  variables {
    issuer = "example.invalid"
    fence  = "reboot"
  }
  expect_failures = [var.issuer, var.fence]
}
