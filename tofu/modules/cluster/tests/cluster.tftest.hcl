mock_provider "aws" {
  mock_resource "aws_eks_cluster" {
    defaults = {
      certificate_authority = [{ data = "Y2E=" }]
      identity              = [{ oidc = [{ issuer = "https://example.invalid/id/1" }] }]
    }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
}

variables {
  name                    = "odc-test"
  kubernetes_version      = "1.34"
  vpc_id                  = "vpc-1"
  subnet_ids              = ["subnet-a", "subnet-b"]
  nodes_security_group_id = "sg-nodes"
  kms_key_arn             = "arn:aws:kms:us-east-2:111122223333:key/1"
  admins                  = { ops = "arn:aws:iam::111122223333:role/ops" }
}

run "a_private_cluster_with_logs_and_encrypted_secrets" {
  command = plan
  assert {
    condition     = aws_eks_cluster.this.vpc_config[0].endpoint_private_access && !aws_eks_cluster.this.vpc_config[0].endpoint_public_access
    error_message = "The API is private unless api_cidrs says otherwise."
  }
  assert {
    condition     = length(aws_eks_cluster.this.enabled_cluster_log_types) == 5 && aws_cloudwatch_log_group.cluster.retention_in_days == 90
    error_message = "All five logs, kept for 90 days."
  }
  assert {
    condition     = aws_eks_cluster.this.encryption_config[0].resources == toset(["secrets"])
    error_message = "Secrets are encrypted with a key of ours."
  }
  assert {
    condition     = aws_eks_cluster.this.access_config[0].authentication_mode == "API" && aws_eks_access_entry.nodes.type == "EC2_LINUX" && keys(aws_eks_access_entry.admin) == ["ops"]
    error_message = "Access entries only."
  }
}

run "ports_of_the_control_plane_and_of_nodes" {
  command = plan
  assert {
    condition     = aws_vpc_security_group_ingress_rule.api_to_nodes["kubelet"].from_port == 10250 && aws_vpc_security_group_ingress_rule.nodes_to_api.from_port == 443
    error_message = "kubelet 10250, API 443."
  }
  assert {
    condition     = alltrue([for protocol in ["tcp", "udp"] : aws_vpc_security_group_ingress_rule.dns[protocol].from_port == 53])
    error_message = "DNS by TCP and UDP."
  }
}

run "a_public_api_for_some_addresses" {
  command = plan
  variables {
    api_cidrs = ["203.0.113.0/24"]
  }
  assert {
    condition     = aws_eks_cluster.this.vpc_config[0].endpoint_public_access && aws_eks_cluster.this.vpc_config[0].public_access_cidrs == toset(["203.0.113.0/24"])
    error_message = "Only these addresses."
  }
}

run "bad_values_are_refused" {
  command = plan
  variables {
    kubernetes_version = "1.29"
    subnet_ids         = ["subnet-a"]
    api_cidrs          = ["0.0.0.0/0"]
    admins             = { ops = "ops" }
    log_days           = 4
  }
  expect_failures = [var.kubernetes_version, var.subnet_ids, var.api_cidrs, var.admins, var.log_days]
}
