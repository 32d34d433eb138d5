mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  cluster_name  = "odc-test"
  disks_key_arn = "arn:aws:kms:us-east-2:111122223333:key/1"
  versions = {
    vpc-cni                = "v1.20.4-eksbuild.2"
    kube-proxy             = "v1.34.0-eksbuild.4"
    coredns                = "v1.12.4-eksbuild.1"
    eks-pod-identity-agent = "v1.3.9-eksbuild.3"
    aws-ebs-csi-driver     = "v1.51.1-eksbuild.1"
    aws-efs-csi-driver     = "v2.1.13-eksbuild.1"
    metrics-server         = "v0.8.0-eksbuild.3"
  }
}

run "add_ons_are_pinned_and_network_policies_are_enforced" {
  command = plan
  assert {
    condition     = jsonencode({ for name, addon in aws_eks_addon.this : name => addon.addon_version }) == jsonencode(var.versions)
    error_message = "Each add-on has its version."
  }
  assert {
    condition     = jsondecode(aws_eks_addon.this["vpc-cni"].configuration_values).enableNetworkPolicy == "true"
    error_message = "The network policies of odc are enforced."
  }
  assert {
    condition     = { for name, association in aws_eks_pod_identity_association.this : name => association.service_account } == { vpc-cni = "aws-node", aws-ebs-csi-driver = "ebs-csi-controller-sa", aws-efs-csi-driver = "efs-csi-controller-sa" }
    error_message = "A role for each that calls AWS."
  }
}

run "an_add_on_without_a_version_is_refused" {
  command = plan
  variables {
    versions = { vpc-cni = "latest" }
  }
  expect_failures = [var.versions]
}
