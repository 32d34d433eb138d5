variable "cluster_name" {
  description = "Name of the cluster."
  type        = string
}

variable "versions" {
  description = "Pinned version of each add-on. `make -C tofu addons ENV=...` prints the newest that fit the cluster."
  type        = map(string)
  validation {
    condition = length(setsubtract([
      "vpc-cni", "kube-proxy", "coredns", "eks-pod-identity-agent", "aws-ebs-csi-driver", "aws-efs-csi-driver", "metrics-server",
    ], keys(var.versions))) == 0
    error_message = "versions must pin vpc-cni, kube-proxy, coredns, eks-pod-identity-agent, aws-ebs-csi-driver, aws-efs-csi-driver and metrics-server."
  }
  validation {
    condition     = alltrue([for version in values(var.versions) : can(regex("^v[0-9]+\\.[0-9]+\\.[0-9]+-eksbuild\\.[0-9]+$", version))])
    error_message = "versions must be full versions of EKS add-ons: for example v1.20.4-eksbuild.1."
  }
}

variable "disks_key_arn" {
  description = "KMS key of disks, with which the EBS driver attaches and creates volumes."
  type        = string
}

variable "partition" {
  description = "Partition of AWS: aws, aws-us-gov or aws-cn."
  type        = string
  default     = "aws"
}

variable "extra" {
  description = "Further add-ons by name, with their versions."
  type        = map(string)
  default     = {}
}
