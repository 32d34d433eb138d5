variable "name" {
  description = "Name of the cluster."
  type        = string
}

variable "kubernetes_version" {
  description = "Minor version of Kubernetes, with two numbers. Raise it by one at a time: docs/operating/cloud.md."
  type        = string
  validation {
    condition     = can(regex("^1\\.(3[1-9]|[4-9][0-9])$", var.kubernetes_version))
    error_message = "kubernetes_version must be a minor version from 1.31 on, which odc needs: for example \"1.34\"."
  }
}

variable "vpc_id" {
  description = "Id of the VPC."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets of the control plane's interfaces, in at least two zones."
  type        = list(string)
  validation {
    condition     = length(var.subnet_ids) >= 2
    error_message = "subnet_ids must name at least two subnets: EKS needs two zones."
  }
}

variable "service_cidr" {
  description = "Address range of services."
  type        = string
  default     = "172.20.0.0/16"
}

variable "nodes_security_group_id" {
  description = "Security group of the nodes."
  type        = string
}

variable "api_cidrs" {
  description = "Address ranges from which the Kubernetes API can be reached over the internet. Empty: only from within the VPC."
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for cidr in var.api_cidrs : can(cidrhost(cidr, 0)) && cidr != "0.0.0.0/0"])
    error_message = "api_cidrs must be IPv4 ranges of your offices or VPN, such as \"203.0.113.0/24\", and not 0.0.0.0/0."
  }
}

variable "admins" {
  description = "ARNs of IAM roles or users that administer the cluster. Key: a name of your own that never changes."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for arn in values(var.admins) : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/.+$", arn))])
    error_message = "admins must map names to ARNs of IAM roles or users: for example { ops = \"arn:aws:iam::111122223333:role/ops\" }."
  }
}

variable "log_days" {
  description = "Days to keep the logs of the control plane."
  type        = number
  default     = 90
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 180, 365], var.log_days)
    error_message = "log_days must be a value that CloudWatch accepts: 1, 3, 5, 7, 14, 30, 60, 90, 120, 180 or 365."
  }
}

variable "kms_key_arn" {
  description = "KMS key that encrypts the cluster's secrets."
  type        = string
}

variable "control_plane_ports_tcp" {
  description = "Ports of nodes and pods that the control plane calls: kubelet 10250, webhooks of operators 443, 8443 and 9443, metrics-server 10251. Key: what they are for."
  type        = map(number)
  default = {
    https          = 443
    webhook_8443   = 8443
    webhook_9443   = 9443
    kubelet        = 10250
    metrics_server = 10251
  }
}
