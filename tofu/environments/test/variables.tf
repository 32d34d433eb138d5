variable "name" {
  description = "Name of the cluster, and prefix of the names of its resources. It never changes."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,26}[a-z0-9]$", var.name))
    error_message = "name must have 3 to 28 lower-case letters, digits and hyphens, begin with a letter and end with a letter or digit: for example odc-test."
  }
}

variable "region" {
  description = "AWS region."
  type        = string
  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z]+)+-[0-9]{1,2}$", var.region))
    error_message = "region must be the name of an AWS region: for example us-east-2."
  }
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes."
  type        = string
  default     = "1.34"
}

variable "network" {
  description = "The VPC: address ranges, zones (empty: the first two or three of the region), a NAT gateway per zone, days to keep the log of rejected connections."
  type = object({
    vpc_cidr      = optional(string, "10.0.0.0/16")
    service_cidr  = optional(string, "172.20.0.0/16")
    zones         = optional(list(string), [])
    max_zones     = optional(number, 3)
    nat_per_zone  = optional(bool, false)
    flow_log_days = optional(number, 30)
  })
  default = {}
}

variable "admins" {
  description = "ARNs of the IAM roles or users that administer the cluster. Key: a name of your own that never changes."
  type        = map(string)
  validation {
    condition     = length(var.admins) > 0
    error_message = "admins must name at least one IAM role or user, or no one could use the cluster: { ops = \"arn:aws:iam::111122223333:role/ops\" }."
  }
}

variable "api_cidrs" {
  description = "Address ranges from which the Kubernetes API can be reached over the internet. Empty: only from within the VPC."
  type        = list(string)
  default     = []
}

variable "log_days" {
  description = "Days to keep the logs of the control plane."
  type        = number
  default     = 90
}

variable "ami_release" {
  description = "Release of EKS's images: \"recommended\", or a pinned one such as v20251112. A new release applies to new nodes only."
  type        = string
  default     = "recommended"
  validation {
    condition     = can(regex("^(recommended|v[0-9]{8})$", var.ami_release))
    error_message = "ami_release must be \"recommended\", or a release such as v20251112."
  }
}

variable "ami_ids" {
  description = "Images of nodes by kind, in place of those of ami_release: x86_64, x86_64_nvidia, arm64."
  type        = map(string)
  default     = {}
  validation {
    condition     = length(setsubtract(keys(var.ami_ids), ["x86_64", "x86_64_nvidia", "arm64"])) == 0
    error_message = "The keys of ami_ids are x86_64, x86_64_nvidia and arm64."
  }
}

variable "system" {
  description = "Nodes for odcd, PostgreSQL and add-ons. Each instance of PostgreSQL needs a node of its own, so three is the least with CloudNativePG."
  type = object({
    instance_type = optional(string, "m7i.xlarge")
    min_nodes     = optional(number, 3)
    max_nodes     = optional(number, 4)
    first_nodes   = optional(number, 3)
    root_gib      = optional(number, 200)
    ami_id        = optional(string)
  })
  default = {}
}

variable "node_groups" {
  description = "Node groups for jobs. The key names the group forever: with another key it is another group. type: a row of gpu-types.yaml. min_nodes is the number of nodes, unless max_nodes is larger. elastic: {} lets odcd change the number between them. market: on-demand or spot. zones: those that may be used; empty: all that offer the type."
  type = map(object({
    type        = string
    min_nodes   = number
    max_nodes   = optional(number)
    first_nodes = optional(number)
    elastic = optional(object({
      cooldown_s = optional(number, 60)
      idle_s     = optional(number, 600)
      boot_s     = optional(number, 300)
    }))
    market         = optional(string, "on-demand")
    instance_type  = optional(string)
    zones          = optional(list(string), [])
    ami_id         = optional(string)
    root_gib       = optional(number)
    root_mib_s     = optional(number, 500)
    root_iops      = optional(number, 3000)
    profiling      = optional(bool, false)
    static_cpus    = optional(bool, false)
    features       = optional(map(string), {})
    prepull_images = optional(list(string), [])
  }))
  validation {
    condition     = alltrue([for group in values(var.node_groups) : contains(["on-demand", "spot"], group.market)])
    error_message = "market of a node group must be \"on-demand\" or \"spot\"; nodes of a capacity block belong into capacity_blocks."
  }
  validation {
    condition     = !contains(keys(var.node_groups), "system")
    error_message = "The key \"system\" belongs to the system nodes: give the node group another key."
  }
}

variable "capacity_blocks" {
  description = "Capacity blocks that you have bought, as `make -C tofu block ID=cr-...` prints them. The key names the group forever."
  type = map(object({
    type           = string
    id             = string
    zone           = string
    instances      = number
    starts_at      = string
    ends_at        = string
    drain_minutes  = optional(number, 35)
    instance_type  = optional(string)
    ami_id         = optional(string)
    root_gib       = optional(number)
    profiling      = optional(bool, false)
    features       = optional(map(string), {})
    prepull_images = optional(list(string), [])
  }))
  default = {}
}

variable "registries" {
  description = "Registries in the cluster, for containerd on the nodes: registry's name to the address of its Service. Applies to new nodes."
  type        = map(string)
  default     = {}
}

variable "storage" {
  description = "Disks and files: see modules/storage."
  type = object({
    fast_disks        = optional(bool, false)
    shared_folders    = optional(bool, true)
    backup            = optional(bool, true)
    recycle_bin_days  = optional(number, 14)
    history_days      = optional(number, 0)
    key_deletion_days = optional(number, 30)
  })
  default = {}
}

variable "database" {
  description = "PostgreSQL: kind is cloudnative-pg or rds; see modules/database. force_destroy deletes backups and images with the environment."
  type = object({
    kind               = optional(string, "cloudnative-pg")
    backup_days        = optional(number, 30)
    lock_mode          = optional(string, "GOVERNANCE")
    rds_instance_class = optional(string, "db.m7g.large")
    rds_version        = optional(string, "17")
    rds_gib            = optional(number, 100)
    force_destroy      = optional(bool, false)
  })
  default = {}
}

variable "database_password" {
  description = "Password of PostgreSQL on RDS: set TF_VAR_database_password."
  type        = string
  default     = null
  sensitive   = true
}

variable "fence" {
  description = "Whether odcd powers the instance of a silent node off before its jobs run elsewhere: off, stop or terminate."
  type        = string
  default     = "terminate"
}

variable "gpu_dev" {
  description = "Whether odcd may import the disks of gpu-dev, and the KMS keys that encrypt their snapshots. Turn it off after the import: meanwhile odcd may delete snapshots of gpu-dev."
  type = object({
    import   = optional(bool, false)
    key_arns = optional(list(string), [])
  })
  default = {}
}

variable "registry" {
  description = "Repositories for your images, and the roles of the pipeline that pushes them; see modules/registry."
  type = object({
    repositories    = optional(set(string), ["odcd", "odc-dev"])
    push_principals = optional(map(string), {})
    public_cache    = optional(bool, false)
  })
  default = {}
}

variable "ingress" {
  description = "The load balancer of users: host name, its Route 53 zone or a certificate, allowed address ranges. null: none; use kubectl port-forward."
  type = object({
    host                = string
    zone_id             = optional(string)
    certificate_arn     = optional(string)
    allowed_cidrs       = optional(list(string), ["0.0.0.0/0"])
    internal            = optional(bool, false)
    deletion_protection = optional(bool, false)
  })
  default = null
}

variable "addons" {
  description = "Pinned versions of EKS add-ons that fit kubernetes_version."
  type        = map(string)
  default = {
    vpc-cni                = "v1.20.4-eksbuild.2"
    kube-proxy             = "v1.34.0-eksbuild.4"
    coredns                = "v1.12.4-eksbuild.1"
    eks-pod-identity-agent = "v1.3.9-eksbuild.3"
    aws-ebs-csi-driver     = "v1.51.1-eksbuild.1"
    aws-efs-csi-driver     = "v2.1.13-eksbuild.1"
    metrics-server         = "v0.8.0-eksbuild.3"
  }
}

variable "odc" {
  description = "Settings of odcd that go into the overlay: image, operators, AWS roles of users (docs/operating/login.md), image of jobs and of dev servers, Prometheus and Grafana, one compiler cache for all users (only if all users trust each other), days to keep ended jobs in the database before they are exported to the bucket of storage.history_days."
  type = object({
    image          = optional(string)
    image_tag      = optional(string)
    operators      = optional(list(string), [])
    aws_roles      = optional(list(string), [])
    job_image      = optional(string)
    dev_image      = optional(string)
    monitoring     = optional(bool, false)
    shared_ccache  = optional(bool, false)
    keep_jobs_days = optional(number)
  })
  default = {}
}
