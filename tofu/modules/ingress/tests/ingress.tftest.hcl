mock_provider "aws" {
  mock_resource "aws_lb" {
    defaults = { arn = "arn:aws:elasticloadbalancing:us-east-2:111122223333:loadbalancer/app/mock/1" }
  }
  mock_resource "aws_lb_target_group" {
    defaults = { arn = "arn:aws:elasticloadbalancing:us-east-2:111122223333:targetgroup/mock/1" }
  }
  mock_resource "aws_lb_listener" {
    defaults = { arn = "arn:aws:elasticloadbalancing:us-east-2:111122223333:listener/app/mock/1/2" }
  }
  mock_resource "aws_acm_certificate" {
    defaults = {
      arn = "arn:aws:acm:us-east-2:111122223333:certificate/mock"
      domain_validation_options = [{
        domain_name           = "odc.example.org"
        resource_record_name  = "_1.odc.example.org"
        resource_record_type  = "CNAME"
        resource_record_value = "_2.example.invalid"
      }]
    }
  }
}

variables {
  name                    = "odc-test"
  vpc_id                  = "vpc-1"
  public_subnet_ids       = ["subnet-a", "subnet-b"]
  nodes_security_group_id = "sg-nodes"
  system_group_name       = "odc-test-system"
  host                    = "odc.example.org"
  certificate_arn         = "arn:aws:acm:us-east-2:111122223333:certificate/1"
}

run "only_https_and_no_metrics" {
  command = plan
  assert {
    condition     = output.url == "https://odc.example.org" && aws_lb_listener.https.port == 443 && aws_lb_listener.https.protocol == "HTTPS"
    error_message = "HTTPS at port 443."
  }
  assert {
    condition     = alltrue([for rule in aws_vpc_security_group_ingress_rule.https : rule.from_port == 443 && rule.to_port == 443])
    error_message = "No other port."
  }
  assert {
    condition     = aws_lb_listener_rule.metrics.action[0].fixed_response[0].status_code == "404"
    error_message = "Metrics stay inside."
  }
  assert {
    condition     = length(aws_acm_certificate.this) == 0 && length(aws_route53_record.host) == 0
    error_message = "Without a zone, certificate and record are yours."
  }
}

run "a_certificate_and_a_record_in_a_zone" {
  command = plan
  variables {
    certificate_arn = null
    zone_id         = "Z1"
    allowed_cidrs   = ["203.0.113.0/24"]
  }
  assert {
    condition     = aws_acm_certificate.this[0].domain_name == "odc.example.org" && aws_route53_record.host[0].name == "odc.example.org" && keys(aws_vpc_security_group_ingress_rule.https) == ["203.0.113.0/24"]
    error_message = "A certificate and a record of the host, for some addresses."
  }
}

run "no_certificate_is_refused" {
  command = plan
  variables {
    certificate_arn = null
  }
  expect_failures = [aws_security_group.balancer]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    host          = "odc"
    allowed_cidrs = []
    node_port     = 80
  }
  expect_failures = [var.host, var.allowed_cidrs, var.node_port]
}
