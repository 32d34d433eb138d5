# The security group of all nodes. Rules have a resource each, so that adding one changes no other.

resource "aws_security_group" "nodes" {
  name        = "${var.name}-nodes"
  description = "Nodes of the cluster ${var.name}"
  vpc_id      = aws_vpc.this.id
  tags        = { Name = "${var.name}-nodes" }
}

# EFA needs all traffic between the nodes, in both directions, by a rule that names the group itself.
# It also covers kubelet (10250), DNS (53) and node ports between nodes.
resource "aws_vpc_security_group_ingress_rule" "nodes_self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "nodes_self" {
  security_group_id            = aws_security_group.nodes.id
  referenced_security_group_id = aws_security_group.nodes.id
  ip_protocol                  = "-1"
}

resource "aws_vpc_security_group_egress_rule" "nodes_out" {
  security_group_id = aws_security_group.nodes.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
  description       = "Images, packages and the AWS API"
}
