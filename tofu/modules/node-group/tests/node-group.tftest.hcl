mock_provider "aws" {
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-0123456789abcdef0" }
  }
  mock_data "aws_ec2_instance_type_offerings" {
    defaults = { locations = ["us-east-2a", "us-east-2b"] }
  }
}

variables {
  key       = "h100"
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
  min_nodes = 2
  cluster = {
    name                  = "odc"
    endpoint              = "https://example.invalid"
    certificate_authority = "Y2E="
    service_cidr          = "172.20.0.0/16"
    instance_profile_name = "odc-nodes"
  }
  subnets            = { us-east-2a = "subnet-a", us-east-2b = "subnet-b", us-east-2c = "subnet-c" }
  security_group_ids = ["sg-1"]
  ami_id             = "ami-0123456789abcdef0"
}

run "an_on_demand_group_of_a_fixed_size" {
  command = plan

  assert {
    condition     = [aws_autoscaling_group.this.min_size, aws_autoscaling_group.this.max_size, aws_autoscaling_group.this.desired_capacity] == [2, 2, 2]
    error_message = "min = max = desired."
  }
  assert {
    condition     = aws_launch_template.this.capacity_reservation_specification[0].capacity_reservation_preference == "none" && length(aws_launch_template.this.instance_market_options) == 0
    error_message = "On-demand instances never use a capacity reservation."
  }
  assert {
    condition     = aws_launch_template.this.metadata_options[0].http_tokens == "required" && aws_launch_template.this.metadata_options[0].http_put_response_hop_limit == 1
    error_message = "IMDSv2 with one hop."
  }
  assert {
    condition     = length(aws_autoscaling_group.this.instance_refresh) == 0 && aws_autoscaling_group.this.protect_from_scale_in && contains(aws_autoscaling_group.this.suspended_processes, "AZRebalance")
    error_message = "AWS ends no node that works."
  }
  assert {
    condition     = aws_autoscaling_group.this.health_check_type == "EC2" && !contains(aws_autoscaling_group.this.suspended_processes, "ReplaceUnhealthy")
    error_message = "Unhealthy nodes are replaced."
  }
  assert {
    condition     = aws_autoscaling_group.this.vpc_zone_identifier == toset(["subnet-a", "subnet-b"])
    error_message = "Only zones that offer the type."
  }
}

run "efa_interfaces_as_many_as_network_cards" {
  command = plan
  assert {
    condition = [for one in aws_launch_template.this.network_interfaces : [one.network_card_index, one.device_index, one.interface_type]] == [
      for card in range(32) : [card, 0, card == 0 ? "efa" : "efa-only"]
    ]
    error_message = "Card 0 is efa, the others are efa-only, all with device index 0."
  }
  assert {
    condition     = aws_launch_template.this.network_interfaces[0].associate_public_ip_address == "false" && alltrue([for one in aws_launch_template.this.network_interfaces : one.security_groups == toset(["sg-1"])])
    error_message = "No public address, and one security group."
  }
  assert {
    condition     = aws_placement_group.this[0].strategy == "cluster" && aws_autoscaling_group.this.placement_group == aws_placement_group.this[0].name
    error_message = "A cluster placement group."
  }
}

run "labels_and_taints" {
  command = plan
  assert {
    condition     = output.labels == { NodeType = "gpu", GpuType = "h100", "nvidia.com/gpu.present" = "true", "odc.dev/placement-group" = "odc-h100" }
    error_message = "Labels that the planner and k8s/ expect."
  }
  assert {
    condition     = output.taints[0].key == "nvidia.com/gpu" && length(output.taints) == 1
    error_message = "GPU nodes are tainted."
  }
}

run "a_capacity_block" {
  command = plan
  variables {
    key                     = "h100-block"
    market                  = "capacity-block"
    capacity_reservation_id = "cr-0123456789abcdef0"
    min_nodes               = 0
    max_nodes               = 2
    first_nodes             = 0
  }
  assert {
    condition     = aws_launch_template.this.instance_market_options[0].market_type == "capacity-block" && aws_launch_template.this.capacity_reservation_specification[0].capacity_reservation_target[0].capacity_reservation_id == "cr-0123456789abcdef0"
    error_message = "The block is the target, with its market type."
  }
  assert {
    condition     = !aws_autoscaling_group.this.protect_from_scale_in
    error_message = "Its nodes leave by schedule."
  }
}

run "spot_scales_to_zero" {
  command = plan
  variables {
    market      = "spot"
    min_nodes   = 0
    max_nodes   = 4
    first_nodes = 0
  }
  assert {
    condition     = aws_launch_template.this.instance_market_options[0].market_type == "spot" && aws_autoscaling_group.this.min_size == 0 && output.labels["feature.odc.dev/spot"] == "true"
    error_message = "A spot group from 0 to 4 nodes, which users can name."
  }
}

run "system_nodes" {
  command = plan
  variables {
    key       = "system"
    role      = "system"
    type_name = "system"
    type = {
      instance_type   = "m7i.xlarge"
      gpus            = 0
      efa             = 0
      arch            = "x86_64"
      fabric_manager  = false
      nvme            = false
      placement_group = false
      root_gib        = 200
    }
    min_nodes   = 1
    max_nodes   = 4
    first_nodes = 2
  }
  assert {
    condition     = output.labels == { NodeType = "cpu", "odc.dev/ignore" = "true" } && length(output.taints) == 0
    error_message = "odc does not plan with system nodes, and system pods run there."
  }
  assert {
    condition     = length(aws_launch_template.this.network_interfaces) == 1 && aws_launch_template.this.network_interfaces[0].interface_type == "interface" && length(aws_placement_group.this) == 0
    error_message = "An ordinary interface."
  }
}

run "the_root_volume_is_encrypted_and_as_large_as_the_type_needs" {
  command = plan
  variables {
    root_gib   = 4096
    root_mib_s = 1000
    root_iops  = 16000
  }
  assert {
    condition     = aws_launch_template.this.block_device_mappings[0].ebs[0].encrypted == "true" && aws_launch_template.this.block_device_mappings[0].ebs[0].volume_size == 4096 && aws_launch_template.this.block_device_mappings[0].ebs[0].throughput == 1000
    error_message = "4 TiB of gp3, encrypted."
  }
}

run "a_region_without_the_type_is_refused" {
  command = plan
  variables {
    subnets = { us-west-1a = "subnet-a" }
  }
  expect_failures = [aws_launch_template.this]
}

run "a_maximum_below_the_minimum_is_refused" {
  command = plan
  variables {
    min_nodes = 3
    max_nodes = 2
  }
  expect_failures = [aws_launch_template.this]
}

run "a_reservation_without_its_market_is_refused" {
  command = plan
  variables {
    capacity_reservation_id = "cr-0123456789abcdef0"
  }
  expect_failures = [aws_launch_template.this]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    key            = "0"
    market         = "reserved"
    min_nodes      = 1.5
    ami_id         = "al2023"
    root_mib_s     = 5000
    prepull_images = ["x; reboot"]
  }
  expect_failures = [var.key, var.market, var.min_nodes, var.ami_id, var.root_mib_s, var.prepull_images]
}

run "an_elastic_group_has_tags_for_odcd" {
  command = plan
  variables {
    max_nodes = 5
    market    = "spot"
    features  = { fast = "", disk = "nvme" }
    elastic   = { idle_s = 900 }
  }
  assert {
    condition = { for tag in aws_autoscaling_group.this.tag : tag.key => tag.value if startswith(tag.key, "odc.dev/") } == {
      "odc.dev/cluster"    = "odc"
      "odc.dev/group"      = "h100"
      "odc.dev/elastic"    = "true"
      "odc.dev/features"   = "amd64 disk-nvme fast p5.48xlarge spot"
      "odc.dev/cooldown-s" = "60"
      "odc.dev/idle-s"     = "900"
      "odc.dev/boot-s"     = "300"
    }
    error_message = "The tags that odcd reads."
  }
}

run "a_group_of_a_fixed_size_is_not_elastic" {
  command = plan
  variables {
    elastic = {}
  }
  expect_failures = [aws_launch_template.this]
}

run "impossible_times_are_refused" {
  command = plan
  variables {
    max_nodes = 5
    elastic   = { idle_s = -1 }
  }
  expect_failures = [var.elastic]
}
