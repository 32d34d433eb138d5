# The test environment: 8 T4 on two nodes, about 7.82 USD per hour, plus about 1.20 for the rest: docs/operating/cloud.md.
name   = "odc-test"
region = "us-west-1"

# Replace it with the role that your administrators use.
admins = {
  ops = "arn:aws:iam::111122223333:role/ops"
}

node_groups = {
  t4 = { type = "t4", min_nodes = 2 }
}

storage = {
  recycle_bin_days  = 7
  key_deletion_days = 7
}

# `tofu destroy` deletes everything here.
database = {
  backup_days   = 7
  force_destroy = true
}
