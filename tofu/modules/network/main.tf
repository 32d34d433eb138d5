# The VPC: per zone one public and one private /20 subnet (of a /16). Nodes are in the private ones and reach the internet through NAT.

data "aws_availability_zones" "here" {
  state = "available"
  # Without local and wavelength zones.
  filter {
    name   = "zone-type"
    values = ["availability-zone"]
  }
}

locals {
  offered = sort(data.aws_availability_zones.here.names)
  chosen  = length(var.zones) > 0 ? sort(var.zones) : slice(local.offered, 0, min(var.max_zones, length(local.offered)))
  # By name: a further zone changes no subnet of the others. The letter of a zone decides its addresses.
  blocks = { for zone in local.chosen : zone => index(["a", "b", "c", "d", "e", "f"], substr(zone, length(zone) - 1, 1)) }

  prefix   = tonumber(split("/", var.vpc_cidr)[1])
  new_bits = 4
  ranges   = [for cidr in [var.vpc_cidr, var.service_cidr] : [for octet in split(".", split("/", cidr)[0]) : format("%08b", octet)]]
  shorter  = min([for cidr in [var.vpc_cidr, var.service_cidr] : tonumber(split("/", cidr)[1])]...)
  overlap  = substr(join("", local.ranges[0]), 0, local.shorter) == substr(join("", local.ranges[1]), 0, local.shorter)

  nat_zones = var.nat_per_zone ? toset(keys(local.blocks)) : toset(slice(sort(keys(local.blocks)), 0, 1))
}

resource "aws_vpc" "this" {
  cidr_block           = var.vpc_cidr
  enable_dns_hostnames = true
  enable_dns_support   = true
  tags                 = { Name = var.name }

  lifecycle {
    precondition {
      condition     = !local.overlap
      error_message = "vpc_cidr ${var.vpc_cidr} and service_cidr ${var.service_cidr} overlap: choose ranges that have no address in common."
    }
    precondition {
      condition     = length(setsubtract(local.chosen, local.offered)) == 0
      error_message = "This region has no zone ${join(", ", setsubtract(local.chosen, local.offered))}. It has ${join(", ", local.offered)}."
    }
  }
}

# No rules: whatever is created without a security group of its own can reach nothing.
resource "aws_default_security_group" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-default-closed" }
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = var.name }
}

resource "aws_subnet" "public" {
  for_each                = local.blocks
  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc_cidr, local.new_bits, each.value)
  map_public_ip_on_launch = false
  tags = {
    Name                     = "${var.name}-public-${each.key}"
    "kubernetes.io/role/elb" = "1"
  }
}

resource "aws_subnet" "private" {
  for_each                = local.blocks
  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.vpc_cidr, local.new_bits, each.value + 8)
  map_public_ip_on_launch = false
  tags = {
    Name                              = "${var.name}-private-${each.key}"
    "kubernetes.io/role/internal-elb" = "1"
  }
}

resource "aws_eip" "nat" {
  for_each = local.nat_zones
  domain   = "vpc"
  tags     = { Name = "${var.name}-nat-${each.key}" }
}

resource "aws_nat_gateway" "this" {
  for_each      = local.nat_zones
  allocation_id = aws_eip.nat[each.key].id
  subnet_id     = aws_subnet.public[each.key].id
  tags          = { Name = "${var.name}-${each.key}" }
  depends_on    = [aws_internet_gateway.this]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = "${var.name}-public" }
}

resource "aws_route" "public" {
  route_table_id         = aws_route_table.public.id
  destination_cidr_block = "0.0.0.0/0"
  gateway_id             = aws_internet_gateway.this.id
}

resource "aws_route_table_association" "public" {
  for_each       = aws_subnet.public
  subnet_id      = each.value.id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "private" {
  for_each = local.blocks
  vpc_id   = aws_vpc.this.id
  tags     = { Name = "${var.name}-private-${each.key}" }
}

resource "aws_route" "private" {
  for_each               = local.blocks
  route_table_id         = aws_route_table.private[each.key].id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.this[contains(local.nat_zones, each.key) ? each.key : sort(local.nat_zones)[0]].id
}

resource "aws_route_table_association" "private" {
  for_each       = aws_subnet.private
  subnet_id      = each.value.id
  route_table_id = aws_route_table.private[each.key].id
}

# Images from ECR and backups go to S3 without paying for NAT.
resource "aws_vpc_endpoint" "s3" {
  vpc_id            = aws_vpc.this.id
  service_name      = "com.amazonaws.${data.aws_region.here.name}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [for table in aws_route_table.private : table.id]
  tags              = { Name = "${var.name}-s3" }
}

data "aws_region" "here" {}
