mock_provider "aws" {
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0" }
  }
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { locations = ["us-east-2a", "us-east-2b"] }
  }
}

variables {
  key     = "h100-block"
  subnets = { us-east-2a = "subnet-a", us-east-2b = "subnet-b" }
  now     = "2026-12-03T00:00:00Z"
  block = {
    id        = "cr-0123456789abcdef0"
    zone      = "us-east-2b"
    instances = 2
    starts_at = "2026-12-01T11:30:00Z"
    ends_at   = "2026-12-08T11:30:00Z"
  }
  group = {
    cluster = {
      name                  = "odc"
      endpoint              = "https://example.invalid"
      certificate_authority = "Y2E="
      service_cidr          = "172.20.0.0/16"
      instance_profile_name = "odc-nodes"
    }
    type_name = "h100"
    type = {
      instance_type   = "p5.48xlarge"
      gpus            = 8
      efa             = 32
      arch            = "x86_64"
      fabric_manager  = true
      nvme            = true
      placement_group = true
      root_gib        = 500
    }
    security_group_ids = ["sg-1"]
    ami_id             = "ami-0123456789abcdef0"
  }
}

run "a_block_that_has_started" {
  command = plan
  assert {
    condition     = length(aws_autoscaling_schedule.start) == 0 && aws_autoscaling_schedule.end[0].start_time == "2026-12-08T10:55:00Z" && aws_autoscaling_schedule.end[0].desired_capacity == 0
    error_message = "Its nodes leave before AWS ends them."
  }
  assert {
    condition     = output.max_nodes == 2 && output.labels["feature.odc.dev/capacity-block"] == "true"
    error_message = "As many nodes as the block has instances."
  }
}

run "a_block_that_has_not_started" {
  command = plan
  variables {
    now = "2026-11-30T00:00:00Z"
  }
  assert {
    condition     = aws_autoscaling_schedule.start[0].start_time == "2026-12-01T11:30:00Z" && aws_autoscaling_schedule.start[0].desired_capacity == 2
    error_message = "Its nodes come when it starts."
  }
}

run "a_block_that_has_ended_is_refused" {
  command = plan
  variables {
    now = "2026-12-09T00:00:00Z"
  }
  expect_failures = [terraform_data.block]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    drain_minutes = 5
    block = {
      id        = "reservation"
      zone      = "us-east-2b"
      instances = 0
      starts_at = "tomorrow"
      ends_at   = "2026-12-08T11:30:00Z"
    }
  }
  expect_failures = [var.block, var.drain_minutes]
}
