output "versions" {
  description = "Version of each add-on."
  value       = { for name, addon in aws_eks_addon.this : name => addon.addon_version }
}
