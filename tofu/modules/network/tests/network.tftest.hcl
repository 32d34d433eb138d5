mock_provider "aws" {
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111122223333:role/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:us-east-2:111122223333:log-group:mock" }
  }
  mock_data "aws_availability_zones" {
    defaults = { names = ["us-east-2c", "us-east-2a", "us-east-2b"] }
  }
  mock_data "aws_region" {
    defaults = { name = "us-east-2" }
  }
}

variables {
  name = "odc-test"
}

run "three_zones_of_public_and_private_subnets" {
  command = plan

  assert {
    condition     = { for zone, subnet in aws_subnet.public : zone => subnet.cidr_block } == { us-east-2a = "10.0.0.0/20", us-east-2b = "10.0.16.0/20", us-east-2c = "10.0.32.0/20" }
    error_message = "The public subnets are the first three /20."
  }
  assert {
    condition     = { for zone, subnet in aws_subnet.private : zone => subnet.cidr_block } == { us-east-2a = "10.0.128.0/20", us-east-2b = "10.0.144.0/20", us-east-2c = "10.0.160.0/20" }
    error_message = "The private subnets begin in the upper half."
  }
  assert {
    condition     = keys(aws_nat_gateway.this) == ["us-east-2a"] && length(aws_route.private) == 3
    error_message = "One NAT gateway serves the private subnets of all zones."
  }
  assert {
    condition     = alltrue([for subnet in concat(values(aws_subnet.public), values(aws_subnet.private)) : !subnet.map_public_ip_on_launch])
    error_message = "No instance gets a public address by itself."
  }
  assert {
    condition     = one([for filter in data.aws_availability_zones.here.filter : filter.values if filter.name == "zone-type"]) == toset(["availability-zone"])
    error_message = "Local zones are left out."
  }
}

run "a_zone_keeps_its_addresses_when_another_leaves" {
  command = plan
  variables {
    zones = ["us-east-2b", "us-east-2c"]
  }
  assert {
    condition     = aws_subnet.private["us-east-2c"].cidr_block == "10.0.160.0/20" && length(aws_subnet.private) == 2
    error_message = "The address range of a zone follows from its letter."
  }
}

run "a_nat_gateway_per_zone" {
  command = plan
  variables {
    nat_per_zone = true
  }
  assert {
    condition     = length(aws_nat_gateway.this) == 3
    error_message = "Each zone has a NAT gateway."
  }
}

run "nodes_may_send_everything_to_each_other_both_ways" {
  command = plan
  assert {
    condition     = aws_vpc_security_group_ingress_rule.nodes_self.ip_protocol == "-1" && aws_vpc_security_group_egress_rule.nodes_self.ip_protocol == "-1"
    error_message = "EFA needs all traffic in both directions."
  }
}

run "no_flow_log" {
  command = plan
  variables {
    flow_log_days = 0
  }
  assert {
    condition     = length(aws_flow_log.rejected) == 0
    error_message = "0 days: no log."
  }
}

run "overlapping_ranges_are_refused" {
  command = plan
  variables {
    service_cidr = "10.0.64.0/18"
  }
  expect_failures = [aws_vpc.this]
}

run "a_range_around_the_other_is_refused" {
  command = plan
  variables {
    vpc_cidr     = "172.20.16.0/20"
    service_cidr = "172.20.0.0/16"
  }
  expect_failures = [aws_vpc.this]
}

run "an_unknown_zone_is_refused" {
  command = plan
  variables {
    zones = ["us-east-2a", "us-west-1b"]
  }
  expect_failures = [aws_vpc.this]
}

run "bad_values_are_refused" {
  command = plan
  variables {
    name          = "Odc_Test"
    vpc_cidr      = "8.8.0.0/16"
    max_zones     = 5
    flow_log_days = 8
  }
  expect_failures = [var.name, var.vpc_cidr, var.max_zones, var.flow_log_days]
}
