# One Auto Scaling group and one launch template. A change of the template applies to new nodes only: there is no instance refresh,
# because a refresh ends the jobs of users.

locals {
  name      = "${var.cluster.name}-${var.key}"
  max_nodes = coalesce(var.max_nodes, var.min_nodes)
  first     = coalesce(var.first_nodes, var.min_nodes)
  gpu       = var.type.gpus > 0
  grouped   = var.type.placement_group && var.role == "jobs"
  offered   = toset(data.aws_ec2_instance_type_offerings.type.locations)
  subnets   = [for zone, subnet in var.subnets : subnet if contains(local.offered, zone)]

  labels = merge(
    { NodeType = local.gpu ? "gpu" : "cpu" },
    var.role == "jobs" ? { GpuType = var.type_name } : { "odc.dev/ignore" = "true" },
    local.gpu ? { "nvidia.com/gpu.present" = "true" } : {},
    local.grouped ? { "odc.dev/placement-group" = local.name } : {},
    var.profiling ? { nsight = "true" } : {},
    var.market == "spot" ? { "feature.odc.dev/spot" = "true" } : {},
    { for name, value in var.features : "feature.odc.dev/${name}" => value },
  )

  # Words for --constraint that its nodes will have, before there is one: see odcd/executor/kubernetes/inventory.py.
  words = sort(concat(
    [var.type.instance_type, var.type.arch == "arm64" ? "arm64" : "amd64"],
    var.profiling ? ["nsight"] : [],
    var.market == "spot" ? ["spot"] : [],
    [for name, value in var.features : contains(["", "true"], value) ? name : "${name}-${value}"],
  ))

  elastic_tags = var.elastic == null ? {} : {
    "odc.dev/elastic"    = "true"
    "odc.dev/features"   = join(" ", local.words)
    "odc.dev/cooldown-s" = tostring(var.elastic.cooldown_s)
    "odc.dev/idle-s"     = tostring(var.elastic.idle_s)
    "odc.dev/boot-s"     = tostring(var.elastic.boot_s)
  }

  # System pods tolerate neither, so they stay on system nodes. Jobs tolerate both.
  taints = var.role == "system" ? [] : [
    local.gpu ? { key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }
    : { key = "odc.dev/jobs", value = "only", effect = "NoSchedule" }
  ]

  tags = {
    Name                                        = local.name
    "kubernetes.io/cluster/${var.cluster.name}" = "owned"
    "odc.dev/cluster"                           = var.cluster.name
    "odc.dev/group"                             = var.key
    GpuType                                     = var.type_name
  }
}

data "aws_ec2_instance_type_offerings" "type" {
  location_type = "availability-zone"
  filter {
    name   = "instance-type"
    values = [var.type.instance_type]
  }
}

data "aws_default_tags" "here" {}

resource "aws_placement_group" "this" {
  count    = local.grouped ? 1 : 0
  name     = local.name
  strategy = "cluster"
  tags     = local.tags
}

resource "aws_launch_template" "this" {
  name                   = local.name
  update_default_version = true
  image_id               = var.ami_id
  instance_type          = var.type.instance_type
  user_data              = base64encode(local.user_data)
  ebs_optimized          = true

  iam_instance_profile {
    name = var.cluster.instance_profile_name
  }

  # Pods are one hop further away than the node, so they do not get the node's credentials.
  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
    instance_metadata_tags      = "disabled"
  }

  # Without "none", on-demand instances would use the slots of a capacity block.
  capacity_reservation_specification {
    capacity_reservation_preference = var.market == "capacity-block" ? null : "none"
    dynamic "capacity_reservation_target" {
      for_each = var.market == "capacity-block" ? [var.capacity_reservation_id] : []
      content {
        capacity_reservation_id = capacity_reservation_target.value
      }
    }
  }

  dynamic "instance_market_options" {
    for_each = var.market == "on-demand" ? [] : [var.market]
    content {
      market_type = instance_market_options.value
    }
  }

  # EFA: an interface per network card. Several interfaces exclude a public address, so nodes are in private subnets.
  dynamic "network_interfaces" {
    for_each = range(max(1, var.type.efa))
    content {
      network_card_index          = network_interfaces.value
      device_index                = 0
      interface_type              = var.type.efa == 0 ? "interface" : network_interfaces.value == 0 ? "efa" : "efa-only"
      associate_public_ip_address = network_interfaces.value == 0 ? false : null
      delete_on_termination       = true
      security_groups             = var.security_group_ids
    }
  }

  block_device_mappings {
    device_name = "/dev/xvda"
    ebs {
      volume_type           = "gp3"
      volume_size           = coalesce(var.root_gib, var.type.root_gib)
      iops                  = var.root_iops
      throughput            = var.root_mib_s
      encrypted             = true
      kms_key_id            = var.kms_key_arn
      delete_on_termination = true
    }
  }

  dynamic "tag_specifications" {
    for_each = toset(["instance", "volume", "network-interface"])
    content {
      resource_type = tag_specifications.key
      tags          = merge(data.aws_default_tags.here.tags, local.tags)
    }
  }

  tags = local.tags

  lifecycle {
    precondition {
      condition     = length(local.subnets) > 0
      error_message = "${var.type.instance_type}, the type of node group ${var.key}, is not offered in ${join(", ", keys(var.subnets))}: it is in ${length(local.offered) == 0 ? "no zone of this region" : join(", ", local.offered)}. Choose another region, zone or type."
    }
    precondition {
      condition     = local.max_nodes >= var.min_nodes && local.first >= 0 && local.first <= local.max_nodes
      error_message = "Node group ${var.key} has min_nodes ${var.min_nodes} and max_nodes ${local.max_nodes}: max_nodes must not be smaller."
    }
    precondition {
      condition     = var.elastic == null || local.max_nodes > var.min_nodes && var.market != "capacity-block" && var.role == "jobs"
      error_message = "Node group ${var.key} cannot be elastic: it must be for jobs, not of a capacity block, and have max_nodes above min_nodes."
    }
    precondition {
      condition     = (var.market == "capacity-block") == (var.capacity_reservation_id != null)
      error_message = "Node group ${var.key}: capacity_reservation_id belongs to market capacity-block, and to no other."
    }
    precondition {
      condition     = !var.profiling || local.gpu
      error_message = "Node group ${var.key} has no GPUs, so profiling must be false."
    }
    precondition {
      condition     = length(local.user_data) < 16384
      error_message = "The user data of node group ${var.key} exceeds 16 KiB: shorten prepull_images or registries."
    }
  }
}

resource "aws_autoscaling_group" "this" {
  name                = local.name
  min_size            = var.min_nodes
  max_size            = local.max_nodes
  desired_capacity    = local.first
  vpc_zone_identifier = local.subnets
  placement_group     = local.grouped ? aws_placement_group.this[0].name : null
  health_check_type   = "EC2"
  default_cooldown    = 60
  # AWS never picks a node to end. Nodes that fail their status checks are still replaced. Those of a block leave by schedule.
  protect_from_scale_in = var.market != "capacity-block"
  suspended_processes   = ["AZRebalance"]
  # Nodes join when they are ready; nothing waits here for capacity that AWS may not have.
  wait_for_capacity_timeout = "0"
  # For `tofu destroy`. A group that has nodes is never removed otherwise: see modules/stack/running.tf.
  force_delete = true

  launch_template {
    id      = aws_launch_template.this.id
    version = "$Latest"
  }

  dynamic "tag" {
    for_each = merge(local.tags, local.elastic_tags)
    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = false
    }
  }

  lifecycle {
    # odcd, an autoscaler or an operator changes it.
    ignore_changes = [desired_capacity]
  }
}
