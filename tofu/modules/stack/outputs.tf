output "url" {
  description = "URL of the server: `odcctl config set server URL`. null without an ingress."
  value       = one(module.ingress[*].url)
}

output "cluster_name" {
  description = "Name of the cluster: `aws eks update-kubeconfig --name NAME`."
  value       = module.cluster.name
}

output "groups" {
  description = "Name, labels and taints of each node group."
  value = merge(
    { for key, group in module.node_group : key => { name = group.name, labels = group.labels, taints = group.taints } },
    { for key, group in module.capacity_block : key => { name = group.name, labels = group.labels, taints = group.taints } },
    { system = { name = module.system.name, labels = module.system.labels, taints = module.system.taints } },
  )
}

output "repository_urls" {
  description = "Repositories for your images."
  value       = module.registry.repository_urls
}

output "push_role_arn" {
  description = "Role of the pipeline that pushes images; null without push_principals."
  value       = module.registry.push_role_arn
}

output "database_uri" {
  description = "The key uri of the Secret odc-db-app with RDS; null with CloudNativePG."
  value       = module.database.uri
  sensitive   = true
}

output "overlay" {
  description = "What `make -C tofu overlay` writes into the overlay for kustomize."
  value = {
    name                   = var.name
    region                 = var.region
    url                    = one(module.ingress[*].url)
    host                   = var.ingress == null ? null : var.ingress.host
    node_port              = one(module.ingress[*].node_port)
    balancer_cidrs         = sort(values(try(var.ingress.internal, false) ? module.network.private_cidrs : module.network.public_cidrs))
    vpc_cidr               = module.network.vpc_cidr
    odcd_role_arn          = module.identity.odcd_role_arn
    backup_role_arn        = module.identity.backup_role_arn
    database_kind          = var.database.kind
    backup_bucket          = module.database.backup_bucket
    backup_days            = var.database.backup_days
    disks_key_arn          = module.storage.key_arns["disks"]
    disk_iops              = module.storage.disk_iops
    disk_mib_s             = module.storage.disk_mib_s
    file_system_id         = module.storage.file_system_id
    ccache_access_point_id = module.storage.ccache_access_point_id
    history_bucket         = module.storage.history_bucket
    keep_jobs_days         = var.odc.keep_jobs_days
    fence                  = var.fence
    elastic                = local.elastic
    efa_instance_types     = sort(distinct([for group in concat(values(local.groups), values(local.blocks)) : coalesce(group.instance_type, local.types[group.type].instance_type) if local.types[group.type].efa > 0]))
    image                  = var.odc.image
    image_tag              = var.odc.image_tag
    operators              = var.odc.operators
    aws_roles              = var.odc.aws_roles
    job_image              = var.odc.job_image
    dev_image              = var.odc.dev_image
    monitoring             = var.odc.monitoring
    shared_ccache          = var.odc.shared_ccache && var.storage.shared_folders
  }
}
