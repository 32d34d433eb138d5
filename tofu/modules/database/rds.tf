# The option rds: an instance with a synchronous standby in a second zone.

locals {
  rds = var.kind == "rds" ? 1 : 0
}

resource "aws_security_group" "database" {
  count       = local.rds
  name        = "${var.name}-database"
  description = "PostgreSQL of ${var.name}"
  vpc_id      = var.vpc_id
  tags        = { Name = "${var.name}-database" }
}

resource "aws_vpc_security_group_ingress_rule" "database" {
  count                        = local.rds
  security_group_id            = aws_security_group.database[0].id
  referenced_security_group_id = var.nodes_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 5432
  to_port                      = 5432
}

resource "aws_db_subnet_group" "this" {
  count      = local.rds
  name       = "${var.name}-database"
  subnet_ids = var.subnet_ids
}

resource "aws_db_parameter_group" "this" {
  count  = local.rds
  name   = "${var.name}-postgres${var.rds_version}"
  family = "postgres${var.rds_version}"
  # odc's hot tables are small and change all the time.
  parameter {
    name  = "autovacuum_naptime"
    value = "10"
  }
  parameter {
    name  = "idle_in_transaction_session_timeout"
    value = "300000"
  }
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
}

resource "aws_db_instance" "this" {
  count                           = local.rds
  identifier                      = "${var.name}-database"
  engine                          = "postgres"
  engine_version                  = var.rds_version
  instance_class                  = var.rds_instance_class
  allocated_storage               = var.rds_gib
  max_allocated_storage           = 4 * var.rds_gib
  storage_type                    = "gp3"
  storage_encrypted               = true
  kms_key_id                      = var.kms_key_arn
  db_name                         = "odc"
  username                        = "odc"
  password                        = var.rds_password
  multi_az                        = true
  publicly_accessible             = false
  db_subnet_group_name            = aws_db_subnet_group.this[0].name
  parameter_group_name            = aws_db_parameter_group.this[0].name
  vpc_security_group_ids          = [aws_security_group.database[0].id]
  backup_retention_period         = var.backup_days
  copy_tags_to_snapshot           = true
  deletion_protection             = !var.force_destroy
  skip_final_snapshot             = var.force_destroy
  final_snapshot_identifier       = "${var.name}-database-final"
  enabled_cloudwatch_logs_exports = ["postgresql"]
  performance_insights_enabled    = true
  auto_minor_version_upgrade      = true

  lifecycle {
    precondition {
      condition     = var.rds_password != null
      error_message = "The database of kind rds needs a password: export TF_VAR_database_password=$(openssl rand -hex 24), and keep it in your password store."
    }
  }
}
