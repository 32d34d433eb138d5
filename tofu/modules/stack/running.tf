# Refusals that need the whole picture, among them: no group that has nodes is removed or made smaller than it is.

data "aws_autoscaling_groups" "existing" {
  filter {
    name   = "tag:odc.dev/cluster"
    values = [var.name]
  }
}

data "aws_autoscaling_group" "existing" {
  for_each = toset(data.aws_autoscaling_groups.existing.names)
  name     = each.key
}

locals {
  unknown_types = setsubtract(local.used_types, keys(local.types))

  maxima = merge(
    { "${var.name}-system" = coalesce(var.system.max_nodes, var.system.min_nodes) },
    { for key, group in var.node_groups : "${var.name}-${key}" => coalesce(group.max_nodes, group.min_nodes) },
    { for key, block in var.capacity_blocks : "${var.name}-${key}" => block.instances },
  )
  removed = [for name, group in data.aws_autoscaling_group.existing : "${name} (${group.desired_capacity} nodes)"
  if !contains(keys(local.maxima), name) && group.desired_capacity > 0]
  shrunk = [for name, group in data.aws_autoscaling_group.existing : "${name} (${group.desired_capacity} nodes, now at most ${lookup(local.maxima, name, 0)})"
  if contains(keys(local.maxima), name) && group.desired_capacity > lookup(local.maxima, name, 0)]
}

resource "terraform_data" "checks" {
  input = var.name
  lifecycle {
    precondition {
      condition     = length(local.unknown_types) == 0
      error_message = "There is no node type ${join(", ", local.unknown_types)}. gpu-types.yaml has ${join(", ", keys(local.types))}; add a row for a new type."
    }
    precondition {
      condition     = length(setintersection(keys(var.node_groups), keys(var.capacity_blocks))) == 0
      error_message = "Node groups and capacity blocks have the same key: ${join(", ", setintersection(keys(var.node_groups), keys(var.capacity_blocks)))}. Give the block another key, for example h100-block."
    }
    precondition {
      condition     = length(local.removed) == 0
      error_message = "Node groups that have nodes would be removed: ${join(", ", local.removed)}. Drain their nodes and take them away first (docs/operating/cloud.md), or put the groups back."
    }
    precondition {
      condition     = length(local.shrunk) == 0
      error_message = "Node groups would have fewer nodes than run now: ${join(", ", local.shrunk)}. Drain nodes and take them away first (docs/operating/cloud.md), then lower the number."
    }
  }
}
