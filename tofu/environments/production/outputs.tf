output "url" {
  description = "URL of the server: `odcctl config set server URL`."
  value       = module.odc.url
}

output "cluster_name" {
  description = "Name of the cluster: `aws eks update-kubeconfig --name NAME`."
  value       = module.odc.cluster_name
}

output "groups" {
  description = "Name, labels and taints of each node group."
  value       = module.odc.groups
}

output "repository_urls" {
  description = "Repositories for your images."
  value       = module.odc.repository_urls
}

output "push_role_arn" {
  description = "Role of the pipeline that pushes images."
  value       = module.odc.push_role_arn
}

output "database_uri" {
  description = "The key uri of the Secret odc-db-app with RDS."
  value       = module.odc.database_uri
  sensitive   = true
}

output "overlay" {
  description = "What `make -C tofu overlay` reads."
  value       = module.odc.overlay
}
