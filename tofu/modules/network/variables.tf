variable "name" {
  description = "Name of the cluster, and prefix of the names of its resources."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}[a-z0-9]$", var.name))
    error_message = "name must have 3 to 32 lower-case letters, digits and hyphens, begin with a letter and end with a letter or digit: for example odc-test."
  }
}

variable "vpc_cidr" {
  description = "Private address range of the VPC, /16 to /20. It must not overlap the service range of the cluster or networks that are connected to it."
  type        = string
  default     = "10.0.0.0/16"
  validation {
    condition     = can(cidrhost(var.vpc_cidr, 0)) && can(regex("^(10\\.|172\\.(1[6-9]|2[0-9]|3[01])\\.|192\\.168\\.)", var.vpc_cidr))
    error_message = "vpc_cidr must be a private IPv4 range (10/8, 172.16/12 or 192.168/16): for example 10.0.0.0/16."
  }
  validation {
    condition     = try(tonumber(split("/", var.vpc_cidr)[1]) >= 16 && tonumber(split("/", var.vpc_cidr)[1]) <= 20, false)
    error_message = "vpc_cidr must be a /16 to /20, because each pod has an address of its own: for example 10.0.0.0/16."
  }
}

variable "service_cidr" {
  description = "Address range of the cluster's services. It must not overlap vpc_cidr."
  type        = string
  default     = "172.20.0.0/16"
  validation {
    condition     = can(cidrhost(var.service_cidr, 0)) && try(tonumber(split("/", var.service_cidr)[1]) >= 12 && tonumber(split("/", var.service_cidr)[1]) <= 24, false)
    error_message = "service_cidr must be an IPv4 range from /12 to /24: for example 172.20.0.0/16."
  }
}

variable "max_zones" {
  description = "Number of Availability Zones to use, 2 or 3. A region with fewer zones uses all that it has."
  type        = number
  default     = 3
  validation {
    condition     = contains([2, 3], var.max_zones)
    error_message = "max_zones must be 2 or 3: EKS needs two zones, and the address plan has room for three."
  }
}

variable "zones" {
  description = "Names of the zones to use. Empty: the first max_zones that the region offers. Set it if a capacity block is in another zone."
  type        = list(string)
  default     = []
  validation {
    condition     = length(var.zones) == 0 || (length(var.zones) >= 2 && length(var.zones) <= 3 && length(distinct(var.zones)) == length(var.zones))
    error_message = "zones must name two or three different Availability Zones, or none: for example [\"us-east-2a\", \"us-east-2b\"]."
  }
}

variable "nat_per_zone" {
  description = "One NAT gateway per zone (the loss of a zone does not cut off the others) instead of one for all."
  type        = bool
  default     = false
}

variable "flow_log_days" {
  description = "Days to keep the log of rejected connections. 0: no such log."
  type        = number
  default     = 30
  validation {
    condition     = contains([0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 180, 365], var.flow_log_days)
    error_message = "flow_log_days must be a value that CloudWatch accepts: 0 (off), 1, 3, 5, 7, 14, 30, 60, 90, 120, 180 or 365."
  }
}
