output "vpc_id" {
  description = "Id of the VPC."
  value       = aws_vpc.this.id
}

output "vpc_cidr" {
  description = "Address range of the VPC."
  value       = aws_vpc.this.cidr_block
}

output "private_subnets" {
  description = "Id of the private subnet of each zone."
  value       = { for zone, subnet in aws_subnet.private : zone => subnet.id }
}

output "public_subnets" {
  description = "Id of the public subnet of each zone."
  value       = { for zone, subnet in aws_subnet.public : zone => subnet.id }
}

output "public_cidrs" {
  description = "Address range of the public subnet of each zone; the load balancer calls from there."
  value       = { for zone, subnet in aws_subnet.public : zone => subnet.cidr_block }
}

output "nodes_security_group_id" {
  description = "Id of the security group of all nodes."
  value       = aws_security_group.nodes.id
}

output "private_cidrs" {
  description = "Address range of the private subnet of each zone."
  value       = { for zone, subnet in aws_subnet.private : zone => subnet.cidr_block }
}
