resource "aws_cloudwatch_log_group" "flow" {
  count             = var.flow_log_days > 0 ? 1 : 0
  name              = "/odc/${var.name}/rejected-connections"
  retention_in_days = var.flow_log_days
}

resource "aws_iam_role" "flow" {
  count = var.flow_log_days > 0 ? 1 : 0
  name  = "${var.name}-flow-log"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "vpc-flow-logs.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "flow" {
  count = var.flow_log_days > 0 ? 1 : 0
  name  = "write"
  role  = aws_iam_role.flow[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
      Resource = "${aws_cloudwatch_log_group.flow[0].arn}:*"
    }]
  })
}

resource "aws_flow_log" "rejected" {
  count           = var.flow_log_days > 0 ? 1 : 0
  vpc_id          = aws_vpc.this.id
  traffic_type    = "REJECT"
  iam_role_arn    = aws_iam_role.flow[0].arn
  log_destination = aws_cloudwatch_log_group.flow[0].arn
  tags            = { Name = "${var.name}-rejected" }
}
