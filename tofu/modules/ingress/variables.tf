variable "name" {
  description = "Name of the cluster, and prefix of the names of its resources."
  type        = string
  validation {
    condition     = length(var.name) <= 28
    error_message = "name must have at most 28 characters, because the name of a load balancer has at most 32."
  }
}

variable "vpc_id" {
  description = "Id of the VPC."
  type        = string
}

variable "public_subnet_ids" {
  description = "Public subnets, in at least two zones."
  type        = list(string)
}

variable "nodes_security_group_id" {
  description = "Security group of the nodes, which get a rule for the load balancer."
  type        = string
}

variable "system_group_name" {
  description = "Auto Scaling group of the system nodes, where odcd runs."
  type        = string
}

variable "host" {
  description = "Host name of the server: odc.example.org."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", var.host))
    error_message = "host must be a full host name in lower case: for example odc.example.org."
  }
}

variable "zone_id" {
  description = "Route 53 zone of the host, in which the certificate is proved and the record is created. null: you do both elsewhere, and give certificate_arn."
  type        = string
  default     = null
}

variable "certificate_arn" {
  description = "Certificate (ACM) of the host. null: one is created, which needs zone_id."
  type        = string
  default     = null
}

variable "allowed_cidrs" {
  description = "Address ranges from which users reach the server. The load balancer is the only thing here that may be open to 0.0.0.0/0."
  type        = list(string)
  default     = ["0.0.0.0/0"]
  validation {
    condition     = length(var.allowed_cidrs) > 0 && alltrue([for cidr in var.allowed_cidrs : can(cidrhost(cidr, 0))])
    error_message = "allowed_cidrs must have at least one IPv4 range: for example [\"203.0.113.0/24\"]."
  }
}

variable "internal" {
  description = "A load balancer with private addresses only, for users in a VPN."
  type        = bool
  default     = false
}

variable "node_port" {
  description = "Port of the Service odcd on the nodes. The overlay sets the same one."
  type        = number
  default     = 30070
  validation {
    condition     = var.node_port >= 30000 && var.node_port <= 32767
    error_message = "node_port must be in the range of node ports, 30000 to 32767."
  }
}

variable "deletion_protection" {
  description = "Whether the load balancer must be unprotected before it can be destroyed."
  type        = bool
  default     = false
}
