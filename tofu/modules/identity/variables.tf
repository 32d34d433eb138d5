variable "name" {
  description = "Name of the cluster, and prefix of the names of roles."
  type        = string
}

variable "issuer" {
  description = "URL of the cluster's OIDC issuer."
  type        = string
  validation {
    condition     = startswith(var.issuer, "https://")
    error_message = "issuer must be the https URL that the module cluster outputs."
  }
}

variable "disks_key_arn" {
  description = "KMS key of disks."
  type        = string
}

variable "data_key_arn" {
  description = "KMS key of backups and exports."
  type        = string
}

variable "file_system_arn" {
  description = "The shared file system; null without one."
  type        = string
  default     = null
}

variable "history_bucket" {
  description = "Bucket of exported history; null without one."
  type        = string
  default     = null
}

variable "backup_bucket" {
  description = "Bucket of PostgreSQL's backups; null without one."
  type        = string
  default     = null
}

variable "optional" {
  description = "Which of the three optional parts exist. They are known before the resources are: { files, history, backups }."
  type = object({
    files   = bool
    history = bool
    backups = bool
  })
}

variable "elastic" {
  description = "Whether odcd changes the number of nodes of groups that are marked elastic."
  type        = bool
  default     = false
}

variable "fence" {
  description = "ODC_FENCE: whether odcd powers the instance of a silent node off before its jobs run elsewhere: off, stop or terminate. The spot and reserved instances need terminate."
  type        = string
  default     = "terminate"
  validation {
    condition     = contains(["off", "stop", "terminate"], var.fence)
    error_message = "fence must be \"off\", \"stop\" or \"terminate\"."
  }
}

variable "gpu_dev" {
  description = "Whether odcd may import the disks of gpu-dev, and the KMS keys that encrypt their snapshots. Turn it off after the import: meanwhile odcd may delete snapshots of gpu-dev."
  type = object({
    import   = optional(bool, false)
    key_arns = optional(list(string), [])
  })
  default = {}
}
