# The same for every environment. Their values are in the var file, their state is in backend.tf.

provider "aws" {
  region = var.region
  default_tags {
    # Never "odc": odcd may delete volumes that have that value.
    tags = { ManagedBy = "opentofu", Environment = var.name }
  }
}

module "odc" {
  source = "../../modules/stack"

  name               = var.name
  region             = var.region
  kubernetes_version = var.kubernetes_version
  network            = var.network
  admins             = var.admins
  api_cidrs          = var.api_cidrs
  log_days           = var.log_days
  ami_release        = var.ami_release
  ami_ids            = var.ami_ids
  system             = var.system
  node_groups        = var.node_groups
  capacity_blocks    = var.capacity_blocks
  registries         = var.registries
  storage            = var.storage
  database           = var.database
  database_password  = var.database_password
  fence              = var.fence
  gpu_dev            = var.gpu_dev
  registry           = var.registry
  ingress            = var.ingress
  addons             = var.addons
  odc                = var.odc
}
