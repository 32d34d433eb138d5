output "name" {
  description = "Name of the Auto Scaling group."
  value       = module.nodes.name
}

output "max_nodes" {
  description = "Number of instances of the block."
  value       = module.nodes.max_nodes
}

output "labels" {
  description = "Labels of the nodes."
  value       = module.nodes.labels
}

output "taints" {
  description = "Taints of the nodes."
  value       = module.nodes.taints
}

output "leaves_at" {
  description = "When the nodes are removed, UTC."
  value       = local.leave
}
