# Nodes of a capacity block: a node group in the block's zone that exists from its start until shortly before its end.

locals {
  now     = var.now == null ? plantimestamp() : var.now
  leave   = timeadd(var.block.ends_at, "-${var.drain_minutes}m")
  started = timecmp(var.block.starts_at, local.now) <= 0
  ended   = timecmp(local.leave, local.now) <= 0
  subnets = { for zone, subnet in var.subnets : zone => subnet if zone == var.block.zone }
}

module "nodes" {
  source = "../node-group"

  key                     = var.key
  cluster                 = var.group.cluster
  type_name               = var.group.type_name
  type                    = var.group.type
  market                  = "capacity-block"
  capacity_reservation_id = var.block.id
  min_nodes               = 0
  max_nodes               = var.block.instances
  first_nodes             = local.started && !local.ended ? var.block.instances : 0
  subnets                 = local.subnets
  security_group_ids      = var.group.security_group_ids
  ami_id                  = var.group.ami_id
  root_gib                = try(var.group.root_gib, null)
  kms_key_arn             = try(var.group.kms_key_arn, null)
  profiling               = try(var.group.profiling, false)
  features                = merge(try(var.group.features, {}), { capacity-block = "true" })
  registries              = try(var.group.registries, {})
  prepull_images          = try(var.group.prepull_images, [])
}

resource "terraform_data" "block" {
  input = var.block.id
  lifecycle {
    precondition {
      condition     = !local.ended
      error_message = "Capacity block ${var.block.id} (${var.key}) ends at ${var.block.ends_at}, and its nodes end ${var.drain_minutes} minutes before. Remove its entry from capacity_blocks; that removes its empty group."
    }
    precondition {
      condition     = length(local.subnets) == 1
      error_message = "Capacity block ${var.block.id} (${var.key}) is in ${var.block.zone}, but the network has subnets in ${join(", ", keys(var.subnets))}: add the zone to the variable zones."
    }
  }
}

# AWS refuses a scheduled action in the past, and removes one that has run.
resource "aws_autoscaling_schedule" "start" {
  count                  = local.started ? 0 : 1
  scheduled_action_name  = "block-starts"
  autoscaling_group_name = module.nodes.name
  start_time             = var.block.starts_at
  min_size               = 0
  max_size               = var.block.instances
  desired_capacity       = var.block.instances
}

resource "aws_autoscaling_schedule" "end" {
  count                  = local.ended ? 0 : 1
  scheduled_action_name  = "block-ends"
  autoscaling_group_name = module.nodes.name
  start_time             = local.leave
  min_size               = 0
  max_size               = var.block.instances
  desired_capacity       = 0
}
