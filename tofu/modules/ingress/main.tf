# A load balancer with TLS in front of odcd. It calls a node port of the system nodes; the Service has externalTrafficPolicy Local, so
# only nodes with a replica of odcd are healthy, and odcd sees the addresses of the load balancer (ODC_TRUSTED_PROXIES).

locals {
  certificate_arn = var.certificate_arn != null ? var.certificate_arn : one(aws_acm_certificate_validation.this[*].certificate_arn)
}

resource "aws_security_group" "balancer" {
  name        = "${var.name}-ingress"
  description = "Load balancer of ${var.name}"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-ingress" }

  lifecycle {
    precondition {
      condition     = var.certificate_arn != null || var.zone_id != null
      error_message = "The ingress needs a certificate: give zone_id (a Route 53 zone of ${var.host}), or certificate_arn."
    }
  }
}

resource "aws_vpc_security_group_ingress_rule" "https" {
  for_each          = toset(var.allowed_cidrs)
  security_group_id = aws_security_group.balancer.id
  cidr_ipv4         = each.key
  ip_protocol       = "tcp"
  from_port         = 443
  to_port           = 443
  description       = "HTTPS from users"
}

resource "aws_vpc_security_group_egress_rule" "to_nodes" {
  security_group_id            = aws_security_group.balancer.id
  referenced_security_group_id = var.nodes_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = var.node_port
  to_port                      = var.node_port
}

resource "aws_vpc_security_group_ingress_rule" "nodes" {
  security_group_id            = var.nodes_security_group_id
  referenced_security_group_id = aws_security_group.balancer.id
  ip_protocol                  = "tcp"
  from_port                    = var.node_port
  to_port                      = var.node_port
}

resource "aws_lb" "this" {
  name                       = "${var.name}-odc"
  load_balancer_type         = "application"
  internal                   = var.internal
  subnets                    = var.public_subnet_ids
  security_groups            = [aws_security_group.balancer.id]
  drop_invalid_header_fields = true
  enable_deletion_protection = var.deletion_protection
  # Terminals, followed logs and tunnels of SSH are quiet for long.
  idle_timeout = 4000
}

resource "aws_lb_target_group" "this" {
  name                 = "${var.name}-odc"
  vpc_id               = var.vpc_id
  target_type          = "instance"
  protocol             = "HTTP"
  port                 = var.node_port
  deregistration_delay = 60
  health_check {
    path                = "/ready"
    interval            = 10
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 2
    matcher             = "200"
  }
}

resource "aws_autoscaling_attachment" "this" {
  autoscaling_group_name = var.system_group_name
  lb_target_group_arn    = aws_lb_target_group.this.arn
}

resource "aws_lb_listener" "https" {
  load_balancer_arn = aws_lb.this.arn
  port              = 443
  protocol          = "HTTPS"
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  certificate_arn   = local.certificate_arn
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.this.arn
  }
}

# Metrics name users and jobs, and need no key: only Prometheus within the cluster reads them.
resource "aws_lb_listener_rule" "metrics" {
  listener_arn = aws_lb_listener.https.arn
  priority     = 1
  action {
    type = "fixed-response"
    fixed_response {
      content_type = "text/plain"
      message_body = "not found"
      status_code  = "404"
    }
  }
  condition {
    path_pattern {
      values = ["/metrics", "/metrics/*"]
    }
  }
}
