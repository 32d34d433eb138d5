# Repositories for odcd's image and the image of dev servers. Images of users' Dockerfiles are in the registry within the cluster
# (k8s/components/registry-builds): a login to ECR expires after 12 hours, and a build would need credentials.

data "aws_caller_identity" "me" {}

data "aws_region" "here" {}

resource "aws_ecr_repository" "this" {
  for_each             = var.repositories
  name                 = "${var.name}/${each.key}"
  image_tag_mutability = "IMMUTABLE"
  force_delete         = var.force_destroy
  image_scanning_configuration {
    scan_on_push = true
  }
  encryption_configuration {
    encryption_type = "AES256"
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  for_each   = aws_ecr_repository.this
  repository = each.value.name
  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Keep the newest images"
      selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = var.kept_images }
      action       = { type = "expire" }
    }]
  })
}

resource "aws_ecr_pull_through_cache_rule" "this" {
  for_each              = var.public_cache ? { ecr-public = "public.ecr.aws", quay = "quay.io", kubernetes = "registry.k8s.io" } : {}
  ecr_repository_prefix = "${var.name}-${each.key}"
  upstream_registry_url = each.value
}

resource "aws_iam_role" "push" {
  count       = length(var.push_principals) > 0 ? 1 : 0
  name        = "${var.name}-image-push"
  description = "For the pipeline that builds images"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { AWS = values(var.push_principals) }
    }]
  })
}

resource "aws_iam_role_policy" "push" {
  count = length(var.push_principals) > 0 ? 1 : 0
  name  = "push"
  role  = aws_iam_role.push[0].id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = "ecr:GetAuthorizationToken"
        Resource = "*"
      },
      {
        Effect = "Allow"
        Action = [
          "ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:CompleteLayerUpload", "ecr:GetDownloadUrlForLayer",
          "ecr:InitiateLayerUpload", "ecr:PutImage", "ecr:UploadLayerPart",
        ]
        Resource = [for repository in aws_ecr_repository.this : repository.arn]
      },
    ]
  })
}
