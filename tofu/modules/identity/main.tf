# A role per component of ours. They are assumed with the token of a service account (IRSA) and not through the Pod Identity agent,
# because the network policies of gpu-controlplane allow no connection to link-local addresses, where that agent listens.
# tests/tofu/test_rights.py compares the actions with the calls in odcd/aws.

data "aws_partition" "here" {}

data "aws_caller_identity" "me" {}

data "aws_region" "here" {}

locals {
  partition = data.aws_partition.here.partition
  account   = data.aws_caller_identity.me.account_id
  region    = data.aws_region.here.name
  issuer    = trimprefix(var.issuer, "https://")
  ec2       = "arn:${local.partition}:ec2:${local.region}"
  disks     = ["${local.ec2}:${local.account}:volume/*", "${local.ec2}::snapshot/*", "${local.ec2}:${local.account}:snapshot/*"]
  fencing   = { stop = "ec2:StopInstances", terminate = "ec2:TerminateInstances" }

  accounts = {
    odcd   = "system:serviceaccount:gpu-controlplane:odcd"
    backup = "system:serviceaccount:gpu-controlplane:odc-db"
  }
}

resource "aws_iam_openid_connect_provider" "cluster" {
  url            = var.issuer
  client_id_list = ["sts.amazonaws.com"]
}

resource "aws_iam_role" "this" {
  for_each    = { for name, account in local.accounts : name => account if name != "backup" || var.optional.backups }
  name        = "${var.name}-${each.key}"
  description = "For ${each.value}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = aws_iam_openid_connect_provider.cluster.arn }
      Condition = {
        StringEquals = {
          "${local.issuer}:sub" = each.value
          "${local.issuer}:aud" = "sts.amazonaws.com"
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "disks" {
  name = "disks"
  role = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Look"
        Effect   = "Allow"
        Action   = ["ec2:DescribeVolumes", "ec2:DescribeSnapshots"]
        Resource = "*"
      },
      {
        Sid      = "Make"
        Effect   = "Allow"
        Action   = ["ec2:CreateVolume", "ec2:CreateSnapshot"]
        Resource = local.disks
      },
      {
        Sid      = "LabelWhatIsMade"
        Effect   = "Allow"
        Action   = "ec2:CreateTags"
        Resource = local.disks
        Condition = {
          StringEquals = { "ec2:CreateAction" = ["CreateVolume", "CreateSnapshot"] }
        }
      },
      {
        Sid      = "ChangeItsOwn"
        Effect   = "Allow"
        Action   = ["ec2:DetachVolume", "ec2:DeleteVolume", "ec2:DeleteSnapshot", "ec2:CreateTags"]
        Resource = local.disks
        Condition = {
          StringEquals = { "aws:ResourceTag/ManagedBy" = "odc" }
        }
      },
      {
        Sid      = "DetachFrom"
        Effect   = "Allow"
        Action   = "ec2:DetachVolume"
        Resource = "${local.ec2}:${local.account}:instance/*"
      },
      {
        Sid      = "KeyOfDisks"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncryptFrom", "kms:ReEncryptTo"]
        Resource = var.disks_key_arn
      },
      {
        Sid      = "GrantToEbs"
        Effect   = "Allow"
        Action   = "kms:CreateGrant"
        Resource = var.disks_key_arn
        Condition = {
          Bool = { "kms:GrantIsForAWSResource" = "true" }
        }
      },
    ]
  })
}

resource "aws_iam_role_policy" "files" {
  count = var.optional.files ? 1 : 0
  name  = "files"
  role  = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid    = "Share"
      Effect = "Allow"
      Action = ["elasticfilesystem:CreateAccessPoint", "elasticfilesystem:DescribeAccessPoints", "elasticfilesystem:TagResource"]
      Resource = [
        var.file_system_arn,
        "arn:${local.partition}:elasticfilesystem:${local.region}:${local.account}:access-point/*",
      ]
    }]
  })
}

# For `odcctl disk import`: odcd makes snapshots of gpu-dev its own by adding its tags.
resource "aws_iam_role_policy" "import" {
  count = var.gpu_dev.import ? 1 : 0
  name  = "import"
  role  = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Sid      = "Adopt"
      Effect   = "Allow"
      Action   = "ec2:CreateTags"
      Resource = ["${local.ec2}::snapshot/*", "${local.ec2}:${local.account}:snapshot/*"]
      Condition = {
        StringLike   = { "aws:ResourceTag/gpu-dev-user" = "*" }
        StringEquals = { "aws:RequestTag/ManagedBy" = "odc" }
        "ForAllValues:StringEquals" = {
          "aws:TagKeys" = ["ManagedBy", "odc-server", "odc-operation", "odc-snapshot-of", "odc-adopted", "odc-disk", "delete-date", "marked-deleted-at"]
        }
      }
      }], [for keys in [var.gpu_dev.key_arns] : {
      Sid      = "ReadKeysOfGpuDev"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:ReEncryptFrom"]
      Resource = keys
      } if length(keys) > 0], [for keys in [var.gpu_dev.key_arns] : {
      Sid       = "GrantKeysOfGpuDev"
      Effect    = "Allow"
      Action    = "kms:CreateGrant"
      Resource  = keys
      Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" } }
    } if length(keys) > 0])
  })
}

resource "aws_iam_role_policy" "fence" {
  count = var.fence == "off" ? 0 : 1
  name  = "fence"
  role  = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Look"
        Effect   = "Allow"
        Action   = "ec2:DescribeInstances"
        Resource = "*"
      },
      {
        Sid      = "PowerOff"
        Effect   = "Allow"
        Action   = local.fencing[var.fence]
        Resource = "${local.ec2}:${local.account}:instance/*"
        Condition = {
          StringEquals = { "aws:ResourceTag/odc.dev/cluster" = var.name }
        }
      },
    ]
  })
}

# Only groups of this cluster that are marked elastic.
resource "aws_iam_role_policy" "elastic" {
  count = var.elastic ? 1 : 0
  name  = "elastic"
  role  = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Look"
        Effect   = "Allow"
        Action   = ["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"]
        Resource = "*"
      },
      {
        Sid      = "Resize"
        Effect   = "Allow"
        Action   = ["autoscaling:SetDesiredCapacity", "autoscaling:TerminateInstanceInAutoScalingGroup"]
        Resource = "arn:${local.partition}:autoscaling:${local.region}:${local.account}:autoScalingGroup:*:autoScalingGroupName/*"
        Condition = {
          StringEquals = {
            "aws:ResourceTag/odc.dev/cluster" = var.name
            "aws:ResourceTag/odc.dev/elastic" = "true"
          }
        }
      },
    ]
  })
}

resource "aws_iam_role_policy" "history" {
  count = var.optional.history ? 1 : 0
  name  = "history"
  role  = aws_iam_role.this["odcd"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Files"
        Effect   = "Allow"
        Action   = ["s3:PutObject", "s3:GetObject"]
        Resource = "arn:${local.partition}:s3:::${var.history_bucket}/*"
      },
      {
        Sid      = "List"
        Effect   = "Allow"
        Action   = "s3:ListBucket"
        Resource = "arn:${local.partition}:s3:::${var.history_bucket}"
      },
      {
        Sid      = "Key"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = var.data_key_arn
      },
    ]
  })
}

# The backup program of PostgreSQL (barman-cloud). It may delete backups that have expired; object lock keeps them until then.
resource "aws_iam_role_policy" "backup" {
  count = var.optional.backups ? 1 : 0
  name  = "backup"
  role  = aws_iam_role.this["backup"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Files"
        Effect   = "Allow"
        Action   = ["s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
        Resource = "arn:${local.partition}:s3:::${var.backup_bucket}/*"
      },
      {
        Sid      = "List"
        Effect   = "Allow"
        Action   = ["s3:ListBucket", "s3:GetBucketLocation"]
        Resource = "arn:${local.partition}:s3:::${var.backup_bucket}"
      },
      {
        Sid      = "Key"
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
        Resource = var.data_key_arn
      },
    ]
  })
}
