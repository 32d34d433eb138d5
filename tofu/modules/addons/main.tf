# EKS add-ons, each pinned. Those that call AWS get a role by Pod Identity. There is no data source here: because of the dependency on
# the system nodes, it would be read only at apply whenever those change, and roles would be replaced.

locals {
  # By add-on: its service account, and AWS's own policy for it. The policies let the drivers change only volumes and access points
  # that they created themselves: odcd's volumes have other tags.
  roles = {
    vpc-cni            = { account = "aws-node", policy = "AmazonEKS_CNI_Policy" }
    aws-ebs-csi-driver = { account = "ebs-csi-controller-sa", policy = "service-role/AmazonEBSCSIDriverPolicy" }
    aws-efs-csi-driver = { account = "efs-csi-controller-sa", policy = "service-role/AmazonEFSCSIDriverPolicy" }
  }

  settings = {
    # The network policies of odc need it.
    vpc-cni = { enableNetworkPolicy = "true", env = { ENABLE_PREFIX_DELEGATION = "true", WARM_PREFIX_TARGET = "1" } }
    # DaemonSets run on every node, whatever its taints.
    aws-ebs-csi-driver = { node = { tolerateAllTaints = true }, controller = { extraVolumeTags = { "odc.dev/cluster" = var.cluster_name } } }
  }
}

resource "aws_iam_role" "this" {
  for_each    = local.roles
  name        = "${var.cluster_name}-${each.key}"
  description = "For the add-on ${each.key}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = ["sts:AssumeRole", "sts:TagSession"]
      Principal = { Service = "pods.eks.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy_attachment" "this" {
  for_each   = local.roles
  role       = aws_iam_role.this[each.key].name
  policy_arn = "arn:${var.partition}:iam::aws:policy/${each.value.policy}"
}

# odcd encrypts disks with this key; the driver attaches them, and encrypts the volumes of StorageClasses with it.
resource "aws_iam_role_policy" "key" {
  name = "key-of-disks"
  role = aws_iam_role.this["aws-ebs-csi-driver"].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
        Resource = var.disks_key_arn
      },
      {
        Effect    = "Allow"
        Action    = "kms:CreateGrant"
        Resource  = var.disks_key_arn
        Condition = { Bool = { "kms:GrantIsForAWSResource" = "true" } }
      },
    ]
  })
}

# A role must exist before its add-on starts.
resource "aws_eks_pod_identity_association" "this" {
  for_each        = local.roles
  cluster_name    = var.cluster_name
  namespace       = "kube-system"
  service_account = each.value.account
  role_arn        = aws_iam_role.this[each.key].arn
  depends_on      = [aws_iam_role_policy_attachment.this]
}

resource "aws_eks_addon" "this" {
  for_each                    = merge(var.versions, var.extra)
  cluster_name                = var.cluster_name
  addon_name                  = each.key
  addon_version               = each.value
  resolve_conflicts_on_create = "OVERWRITE"
  resolve_conflicts_on_update = "OVERWRITE"
  configuration_values        = contains(keys(local.settings), each.key) ? jsonencode(local.settings[each.key]) : null
  depends_on                  = [aws_eks_pod_identity_association.this]
}
