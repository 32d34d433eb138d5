output "name" {
  description = "Name of the Auto Scaling group and of the launch template."
  value       = aws_autoscaling_group.this.name
}

output "max_nodes" {
  description = "Maximum number of nodes."
  value       = local.max_nodes
}

output "labels" {
  description = "Labels of the nodes."
  value       = local.labels
}

output "taints" {
  description = "Taints of the nodes."
  value       = local.taints
}

output "instance_type" {
  description = "Instance type of the nodes."
  value       = var.type.instance_type
}
