# Everything that an environment has. environments/ calls it with the values of one environment.

locals {
  types  = yamldecode(file("${path.module}/../../gpu-types.yaml"))
  groups = { for key, group in var.node_groups : key => group if contains(keys(local.types), group.type) }
  blocks = { for key, block in var.capacity_blocks : key => block if contains(keys(local.types), block.type) }

  elastic = anytrue([for group in values(var.node_groups) : group.elastic != null])

  used_types = distinct([for group in concat(values(var.node_groups), values(var.capacity_blocks)) : group.type])

  cluster = {
    name                  = module.cluster.name
    endpoint              = module.cluster.endpoint
    certificate_authority = module.cluster.certificate_authority
    service_cidr          = module.cluster.service_cidr
    instance_profile_name = module.cluster.instance_profile_name
  }

  system_type = {
    instance_type   = var.system.instance_type
    gpus            = 0
    efa             = 0
    arch            = "x86_64"
    fabric_manager  = false
    nvme            = false
    placement_group = false
    root_gib        = var.system.root_gib
  }
}

data "aws_partition" "here" {}

module "network" {
  source        = "../network"
  name          = var.name
  vpc_cidr      = var.network.vpc_cidr
  service_cidr  = var.network.service_cidr
  zones         = var.network.zones
  max_zones     = var.network.max_zones
  nat_per_zone  = var.network.nat_per_zone
  flow_log_days = var.network.flow_log_days
}

module "storage" {
  source                  = "../storage"
  name                    = var.name
  vpc_id                  = module.network.vpc_id
  subnets                 = module.network.private_subnets
  nodes_security_group_id = module.network.nodes_security_group_id
  fast_disks              = var.storage.fast_disks
  shared_folders          = var.storage.shared_folders
  backup                  = var.storage.backup
  recycle_bin_days        = var.storage.recycle_bin_days
  history_days            = var.storage.history_days
  key_deletion_days       = var.storage.key_deletion_days
}

module "cluster" {
  source                  = "../cluster"
  name                    = var.name
  kubernetes_version      = var.kubernetes_version
  vpc_id                  = module.network.vpc_id
  subnet_ids              = [for zone in sort(keys(module.network.private_subnets)) : module.network.private_subnets[zone]]
  service_cidr            = var.network.service_cidr
  nodes_security_group_id = module.network.nodes_security_group_id
  api_cidrs               = var.api_cidrs
  admins                  = var.admins
  log_days                = var.log_days
  kms_key_arn             = module.storage.key_arns["cluster"]
}

module "system" {
  source             = "../node-group"
  key                = "system"
  cluster            = local.cluster
  role               = "system"
  type_name          = "system"
  type               = local.system_type
  min_nodes          = var.system.min_nodes
  max_nodes          = var.system.max_nodes
  first_nodes        = var.system.first_nodes
  subnets            = module.network.private_subnets
  security_group_ids = [module.network.nodes_security_group_id]
  ami_id             = coalesce(var.system.ami_id, local.amis["x86_64"])
  root_mib_s         = 125
  registries         = var.registries
}

module "node_group" {
  source   = "../node-group"
  for_each = local.groups

  key                = each.key
  cluster            = local.cluster
  type_name          = each.value.type
  type               = merge(local.types[each.value.type], each.value.instance_type == null ? {} : { instance_type = each.value.instance_type })
  market             = each.value.market
  min_nodes          = each.value.min_nodes
  max_nodes          = each.value.max_nodes
  first_nodes        = each.value.first_nodes
  elastic            = each.value.elastic
  subnets            = { for zone, subnet in module.network.private_subnets : zone => subnet if length(each.value.zones) == 0 || contains(each.value.zones, zone) }
  security_group_ids = [module.network.nodes_security_group_id]
  ami_id             = coalesce(each.value.ami_id, local.amis[local.kinds[each.value.type]])
  root_gib           = each.value.root_gib
  root_mib_s         = each.value.root_mib_s
  root_iops          = each.value.root_iops
  profiling          = each.value.profiling
  static_cpus        = each.value.static_cpus
  features           = each.value.features
  prepull_images     = each.value.prepull_images
  registries         = var.registries
}

module "capacity_block" {
  source   = "../capacity-block"
  for_each = local.blocks

  key           = each.key
  drain_minutes = each.value.drain_minutes
  subnets       = module.network.private_subnets
  block = {
    id        = each.value.id
    zone      = each.value.zone
    instances = each.value.instances
    starts_at = each.value.starts_at
    ends_at   = each.value.ends_at
  }
  group = {
    cluster            = local.cluster
    type_name          = each.value.type
    type               = merge(local.types[each.value.type], each.value.instance_type == null ? {} : { instance_type = each.value.instance_type })
    security_group_ids = [module.network.nodes_security_group_id]
    ami_id             = coalesce(each.value.ami_id, local.amis[local.kinds[each.value.type]])
    root_gib           = each.value.root_gib
    profiling          = each.value.profiling
    features           = each.value.features
    registries         = var.registries
    prepull_images     = each.value.prepull_images
  }
}

module "addons" {
  source        = "../addons"
  cluster_name  = module.cluster.name
  versions      = var.addons
  partition     = data.aws_partition.here.partition
  disks_key_arn = module.storage.key_arns["disks"]
  # CoreDNS and the drivers become active only when there are nodes.
  depends_on = [module.system]
}

module "database" {
  source                  = "../database"
  name                    = var.name
  kind                    = var.database.kind
  kms_key_arn             = module.storage.key_arns["data"]
  backup_days             = var.database.backup_days
  lock_mode               = var.database.lock_mode
  force_destroy           = var.database.force_destroy
  vpc_id                  = module.network.vpc_id
  subnet_ids              = values(module.network.private_subnets)
  nodes_security_group_id = module.network.nodes_security_group_id
  rds_instance_class      = var.database.rds_instance_class
  rds_version             = var.database.rds_version
  rds_gib                 = var.database.rds_gib
  rds_password            = var.database_password
}

module "identity" {
  source          = "../identity"
  name            = var.name
  issuer          = module.cluster.issuer
  disks_key_arn   = module.storage.key_arns["disks"]
  data_key_arn    = module.storage.key_arns["data"]
  file_system_arn = module.storage.file_system_arn
  history_bucket  = module.storage.history_bucket
  backup_bucket   = module.database.backup_bucket
  fence           = var.fence
  gpu_dev         = var.gpu_dev
  elastic         = local.elastic
  optional = {
    files   = var.storage.shared_folders
    history = var.storage.history_days > 0
    backups = var.database.kind == "cloudnative-pg"
  }
}

module "registry" {
  source          = "../registry"
  name            = var.name
  repositories    = var.registry.repositories
  push_principals = var.registry.push_principals
  public_cache    = var.registry.public_cache
  force_destroy   = var.database.force_destroy
}

module "ingress" {
  source = "../ingress"
  count  = var.ingress == null ? 0 : 1

  name                    = var.name
  vpc_id                  = module.network.vpc_id
  public_subnet_ids       = values(var.ingress.internal ? module.network.private_subnets : module.network.public_subnets)
  nodes_security_group_id = module.network.nodes_security_group_id
  system_group_name       = module.system.name
  host                    = var.ingress.host
  zone_id                 = var.ingress.zone_id
  certificate_arn         = var.ingress.certificate_arn
  allowed_cidrs           = var.ingress.allowed_cidrs
  internal                = var.ingress.internal
  deletion_protection     = var.ingress.deletion_protection
}
