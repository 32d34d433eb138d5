variable "key" {
  description = "Key of the block: part of the names of its group. It never changes."
  type        = string
}

variable "block" {
  description = "The capacity block, as `make -C tofu block ID=cr-...` prints it: id, zone, number of instances, start and end (UTC)."
  type = object({
    id        = string
    zone      = string
    instances = number
    starts_at = string
    ends_at   = string
  })
  validation {
    condition     = can(regex("^cr-[0-9a-f]{8,}$", var.block.id))
    error_message = "The id of a capacity block must look like cr-0123456789abcdef0."
  }
  validation {
    condition     = alltrue([for at in [var.block.starts_at, var.block.ends_at] : can(regex("^[0-9-]{10}T[0-9:]{8}Z$", at)) && can(timeadd(at, "0s"))])
    error_message = "starts_at and ends_at of a capacity block must be moments in UTC: for example 2026-12-01T11:30:00Z."
  }
  validation {
    condition     = try(timecmp(var.block.starts_at, var.block.ends_at) < 0, false)
    error_message = "A capacity block must end after it starts: compare starts_at and ends_at."
  }
  validation {
    condition     = var.block.instances >= 1 && floor(var.block.instances) == var.block.instances
    error_message = "A capacity block has at least one instance."
  }
}

variable "drain_minutes" {
  description = "How long before the end of the block its nodes are removed. AWS itself ends them 30 minutes before the end. Book the block in odc until then: docs/operating/cloud.md."
  type        = number
  default     = 35
  validation {
    condition     = var.drain_minutes >= 30 && var.drain_minutes <= 600
    error_message = "drain_minutes must be 30 to 600: AWS ends the instances of a block 30 minutes before its end."
  }
}

variable "subnets" {
  description = "Private subnet of each zone."
  type        = map(string)
}

variable "group" {
  description = "The other variables of modules/node-group."
  type        = any
}

variable "now" {
  description = "The moment to compare with, in UTC. null: the moment of the plan."
  type        = string
  default     = null
}
