variable "key" {
  description = "Key of the group: part of its names, so a group with another key is another group. It never changes."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,30}$", var.key))
    error_message = "The key of a node group must begin with a lower-case letter and have at most 31 lower-case letters, digits and hyphens: for example h100 or h100-block."
  }
}

variable "cluster" {
  description = "The cluster that the nodes join: outputs of the module cluster."
  type = object({
    name                  = string
    endpoint              = string
    certificate_authority = string
    service_cidr          = string
    instance_profile_name = string
  })
}

variable "type_name" {
  description = "Name of the node type, the value of the label GpuType: h100, cpu-x86."
  type        = string
}

variable "type" {
  description = "Row of the node type in gpu-types.yaml."
  type = object({
    instance_type   = string
    gpus            = number
    efa             = number
    arch            = string
    fabric_manager  = bool
    nvme            = bool
    placement_group = bool
    root_gib        = number
  })
  validation {
    condition     = contains(["x86_64", "arm64"], var.type.arch) && var.type.gpus >= 0 && var.type.efa >= 0 && var.type.efa <= 32
    error_message = "type must be a row of gpu-types.yaml: arch x86_64 or arm64, gpus 0 or more, efa 0 to 32."
  }
}

variable "role" {
  description = "jobs: nodes for jobs and dev servers. system: nodes for odcd, PostgreSQL and add-ons, which odc does not plan with."
  type        = string
  default     = "jobs"
  validation {
    condition     = contains(["jobs", "system"], var.role)
    error_message = "role must be \"jobs\" or \"system\"."
  }
}

variable "market" {
  description = "on-demand, spot or capacity-block."
  type        = string
  default     = "on-demand"
  validation {
    condition     = contains(["on-demand", "spot", "capacity-block"], var.market)
    error_message = "market must be \"on-demand\", \"spot\" or \"capacity-block\"."
  }
}

variable "capacity_reservation_id" {
  description = "Capacity block that the instances use; only with market capacity-block."
  type        = string
  default     = null
  validation {
    condition     = var.capacity_reservation_id == null || can(regex("^cr-[0-9a-f]{8,}$", var.capacity_reservation_id))
    error_message = "capacity_reservation_id must be an id such as cr-0123456789abcdef0."
  }
}

variable "min_nodes" {
  description = "Number of nodes, or the minimum of an elastic group."
  type        = number
  validation {
    condition     = var.min_nodes >= 0 && var.min_nodes <= 500 && floor(var.min_nodes) == var.min_nodes
    error_message = "min_nodes must be a whole number from 0 to 500."
  }
}

variable "max_nodes" {
  description = "Maximum of an elastic group. null: min_nodes, so the group has a fixed size."
  type        = number
  default     = null
}

variable "elastic" {
  description = "odcd keeps as many nodes as pending jobs need, between min_nodes and max_nodes: { cooldown_s: seconds between two requests for more nodes, idle_s: how long a node is empty until it is removed, boot_s: how long a new node takes to join }. null: odcd does not change the number."
  type = object({
    cooldown_s = optional(number, 60)
    idle_s     = optional(number, 600)
    boot_s     = optional(number, 300)
  })
  default = null
  validation {
    condition     = var.elastic == null || try(alltrue([for seconds in values(var.elastic) : seconds >= 0 && seconds <= 604800 && floor(seconds) == seconds]), false)
    error_message = "The values of elastic are whole seconds, from 0 to 604800 (a week)."
  }
}

variable "first_nodes" {
  description = "Number of nodes when the group is created. Later the group keeps the number that it has, between min_nodes and max_nodes."
  type        = number
  default     = null
}

variable "subnets" {
  description = "Private subnet of each zone that may be used."
  type        = map(string)
}

variable "security_group_ids" {
  description = "Security groups of the nodes. One of them must allow all traffic from and to itself, or EFA does not work."
  type        = list(string)
}

variable "ami_id" {
  description = "Image of the nodes: Amazon Linux 2023 for EKS, with NVIDIA's driver for GPU types. A new image applies to new nodes only."
  type        = string
  validation {
    condition     = can(regex("^ami-[0-9a-f]{8,}$", var.ami_id))
    error_message = "ami_id must be an id such as ami-0123456789abcdef0. `make -C tofu amis ENV=...` prints those of EKS."
  }
}

variable "root_gib" {
  description = "Size of the root volume in GiB. null: the value of the type. It holds images and scratch space if the type has no NVMe."
  type        = number
  default     = null
  validation {
    condition     = var.root_gib == null || try(var.root_gib >= 50 && var.root_gib <= 16384, false)
    error_message = "root_gib must be 50 to 16384."
  }
}

variable "root_iops" {
  description = "IOPS of the root volume (gp3): 3000 are included in its price."
  type        = number
  default     = 3000
  validation {
    condition     = var.root_iops >= 3000 && var.root_iops <= 16000
    error_message = "root_iops must be 3000 to 16000."
  }
}

variable "root_mib_s" {
  description = "Throughput of the root volume (gp3) in MiB/s: 125 are included in its price."
  type        = number
  default     = 500
  validation {
    condition     = var.root_mib_s >= 125 && var.root_mib_s <= 1000
    error_message = "root_mib_s must be 125 to 1000."
  }
}

variable "kms_key_arn" {
  description = "KMS key of the root volume. null: the account's key for EBS. It is encrypted in any case."
  type        = string
  default     = null
}

variable "profiling" {
  description = "Nodes for Nsight: the driver lets containers read its counters, and the label nsight=true is set. Read docs/operating/kubernetes.md first."
  type        = bool
  default     = false
}

variable "huge_pages_2_mib" {
  description = "Number of huge pages of 2 MiB on nodes with EFA. odc gives 5120 MiB of them to a member that uses a whole node."
  type        = number
  default     = 5128
}

variable "static_cpus" {
  description = "kubelet's static CPU manager. It pins only pods of the class Guaranteed with whole CPUs; the pods of odc's jobs are Burstable, so it has no effect on them."
  type        = bool
  default     = false
}

variable "features" {
  description = "Features for --constraint: label feature.odc.dev/KEY=VALUE."
  type        = map(string)
  default     = {}
}

variable "registries" {
  description = "Registries in the cluster, for containerd: registry's name to the address of its Service (k8s/nodes/registries.sh)."
  type        = map(string)
  default     = {}
}

variable "prepull_images" {
  description = "Images that a node pulls when it starts, in addition to those of k8s/components/image-prepull."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for image in var.prepull_images : can(regex("^[A-Za-z0-9][A-Za-z0-9./:@_-]+$", image))])
    error_message = "prepull_images must be full names of images: for example nvcr.io/nvidia/cuda:12.8.1-base-ubuntu24.04."
  }
}

variable "efa_installer_version" {
  description = "Version of the EFA installer for images without the driver. null: the image has it, as EKS's NVIDIA images do."
  type        = string
  default     = null
  validation {
    condition     = var.efa_installer_version == null || can(regex("^[0-9]+\\.[0-9]+\\.[0-9]+$", var.efa_installer_version))
    error_message = "efa_installer_version must have three numbers: for example 1.43.1."
  }
}
