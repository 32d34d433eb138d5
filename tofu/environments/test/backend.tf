# Where the state is kept: docs/operating/cloud.md shows how the bucket is made. The lock is a file beside the state.
terraform {
  backend "s3" {
    key          = "odc/test.tfstate"
    encrypt      = true
    use_lockfile = true
  }
}
