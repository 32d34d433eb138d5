# Terraform, and OpenTofu before 1.8, read this file, which refuses them; OpenTofu reads versions.tofu in its place.
terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

variable "program" {
  description = "Leave it alone: it refuses Terraform."
  type        = string
  default     = "terraform"
  validation {
    condition     = var.program != "terraform"
    error_message = "This configuration is for OpenTofu 1.10 or newer, not for Terraform: run `tofu` in place of `terraform`."
  }
}
