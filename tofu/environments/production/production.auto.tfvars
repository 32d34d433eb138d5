# The production environment. Only types with nodes here can be requested. Costs: docs/operating/cloud.md.
name   = "odc"
region = "us-east-2"

# Replace it with the role that your administrators use.
admins = {
  ops = "arn:aws:iam::111122223333:role/ops"
}

network = {
  nat_per_zone = true
}

# Change the number of a type to 0 if you have no quota for it.
node_groups = {
  a100    = { type = "a100", min_nodes = 2 }
  h100    = { type = "h100", min_nodes = 2 }
  h200    = { type = "h200", min_nodes = 2 }
  b200    = { type = "b200", min_nodes = 2 }
  t4      = { type = "t4", min_nodes = 3 }
  l4      = { type = "l4", min_nodes = 3 }
  cpu-x86 = { type = "cpu-x86", min_nodes = 1, max_nodes = 4, first_nodes = 2 }
  cpu-arm = { type = "cpu-arm", min_nodes = 1, max_nodes = 4, first_nodes = 1 }
}

# As `make -C tofu block ID=cr-...` prints it:
# capacity_blocks = {
#   h100-block = { type = "h100", id = "cr-0123456789abcdef0", zone = "us-east-2b", instances = 2, starts_at = "2026-12-01T11:30:00Z", ends_at = "2026-12-08T11:30:00Z" }
# }

# Disks with 16,000 IOPS and 1,000 MB/s cost about 100 USD more per month and volume:
# storage = { fast_disks = true }

database = {
  lock_mode = "COMPLIANCE"
}

# ingress = {
#   host          = "odc.example.org"
#   zone_id       = "Z0123456789ABCDEFGHIJ"
#   allowed_cidrs = ["203.0.113.0/24"]
# }
