output "repository_urls" {
  description = "URL of each repository."
  value       = { for name, repository in aws_ecr_repository.this : name => repository.repository_url }
}

output "push_role_arn" {
  description = "Role that pushes images; null without push_principals."
  value       = one(aws_iam_role.push[*].arn)
}
