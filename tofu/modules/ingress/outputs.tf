output "url" {
  description = "URL of the server: `odcctl config set server URL`."
  value       = "https://${var.host}"
}

output "balancer_name" {
  description = "Name of the load balancer, to which a record of your own must point if zone_id is null."
  value       = aws_lb.this.dns_name
}

output "node_port" {
  description = "Port of the Service odcd on the nodes."
  value       = var.node_port
}
