mock_provider "aws" {
  mock_resource "aws_eks_cluster" {
    defaults = {
      certificate_authority = [{ data = "Y2E=" }]
      identity              = [{ oidc = [{ issuer = "https://example.invalid/id/1" }] }]
    }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-2:111122223333:log-group:mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:us-east-2:111122223333:key/mock" }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0" }
  }
  mock_resource "aws_iam_openid_connect_provider" {
    defaults = { arn = "arn:aws:iam::111122223333:oidc-provider/example.invalid/id/1" }
  }
  mock_data "aws_availability_zones" {
    defaults = { names = ["us-east-2a", "us-east-2b", "us-east-2c"] }
  }
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { locations = ["us-east-2a", "us-east-2b", "us-east-2c"] }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_region" {
    defaults = { name = "us-east-2" }
  }
}

variables {
  name    = "odc-test"
  region  = "us-east-2"
  ami_ids = { x86_64 = "ami-0123456789abcdef0", x86_64_nvidia = "ami-0123456789abcdef1", arm64 = "ami-0123456789abcdef2" }
  admins  = { ops = "arn:aws:iam::111122223333:role/ops" }
  node_groups = {
    h100 = { type = "h100", min_nodes = 2 }
    t4   = { type = "t4", min_nodes = 1, max_nodes = 3 }
    arm  = { type = "cpu-arm", min_nodes = 0, market = "spot" }
  }
}

run "groups_have_the_keys_that_the_var_file_gives" {
  command = plan
  assert {
    condition     = { for key, group in output.groups : key => group.name } == { h100 = "odc-test-h100", t4 = "odc-test-t4", arm = "odc-test-arm", system = "odc-test-system" }
    error_message = "One group per key."
  }
  assert {
    condition     = output.groups["t4"].labels["GpuType"] == "t4" && output.groups["arm"].taints[0].key == "odc.dev/jobs"
    error_message = "Labels and taints follow from the type."
  }
}

run "a_group_of_the_same_type_beside_the_other" {
  command = plan
  variables {
    node_groups = {
      h100      = { type = "h100", min_nodes = 2 }
      h100-more = { type = "h100", min_nodes = 1, instance_type = "p5e.48xlarge", profiling = true }
    }
  }
  assert {
    condition     = output.groups["h100-more"].labels["nsight"] == "true" && output.groups["h100"].labels["GpuType"] == output.groups["h100-more"].labels["GpuType"]
    error_message = "Several sources of one type, each with a key of its own."
  }
}

run "an_unknown_type_is_refused" {
  command = plan
  variables {
    node_groups = { v100 = { type = "v100", min_nodes = 1 } }
  }
  expect_failures = [terraform_data.checks]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    name        = "a"
    region      = "Ohio"
    admins      = {}
    ami_release = "latest"
    ami_ids     = { amd64 = "ami-0123456789abcdef0" }
  }
  expect_failures = [var.name, var.region, var.admins, var.ami_release, var.ami_ids]
}
