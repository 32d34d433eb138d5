variable "name" {
  description = "Name of the cluster, and prefix of the names of repositories."
  type        = string
}

variable "repositories" {
  description = "Repositories of images that your pipeline builds."
  type        = set(string)
  default     = ["odcd", "odc-dev"]
  validation {
    condition     = alltrue([for name in var.repositories : can(regex("^[a-z][a-z0-9._/-]{1,100}$", name))])
    error_message = "repositories must have names of lower-case letters, digits, dots, slashes and hyphens: for example odcd."
  }
}

variable "kept_images" {
  description = "Number of images to keep in each repository."
  type        = number
  default     = 30
  validation {
    condition     = var.kept_images >= 2
    error_message = "kept_images must be at least 2: the image in use, and the one before."
  }
}

variable "push_principals" {
  description = "ARNs of the IAM roles of your pipeline, which may assume the role that pushes images. Key: a name."
  type        = map(string)
  default     = {}
  validation {
    condition     = alltrue([for arn in values(var.push_principals) : can(regex("^arn:aws[a-z-]*:iam::[0-9]{12}:role/.+$", arn))])
    error_message = "push_principals must map names to ARNs of IAM roles."
  }
}

variable "public_cache" {
  description = "Cache public.ecr.aws, quay.io and registry.k8s.io in ECR, as ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME-ecr-public and so on."
  type        = bool
  default     = false
}

variable "force_destroy" {
  description = "Whether `tofu destroy` also deletes images. Only for tests."
  type        = bool
  default     = false
}
