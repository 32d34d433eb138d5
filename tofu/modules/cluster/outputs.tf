output "name" {
  description = "Name of the cluster."
  value       = aws_eks_cluster.this.name
}

output "kubernetes_version" {
  description = "Minor version of Kubernetes."
  value       = aws_eks_cluster.this.version
}

output "endpoint" {
  description = "Address of the Kubernetes API."
  value       = aws_eks_cluster.this.endpoint
}

output "certificate_authority" {
  description = "Certificate of the Kubernetes API, in base64."
  value       = aws_eks_cluster.this.certificate_authority[0].data
}

output "issuer" {
  description = "URL of the cluster's OIDC issuer."
  value       = aws_eks_cluster.this.identity[0].oidc[0].issuer
}

output "service_cidr" {
  description = "Address range of services."
  value       = var.service_cidr
}

output "instance_profile_name" {
  description = "Instance profile of nodes."
  value       = aws_iam_instance_profile.nodes.name
}

output "nodes_role_arn" {
  description = "Role of nodes."
  value       = aws_iam_role.nodes.arn
}
