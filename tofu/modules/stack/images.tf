# Images of nodes: EKS's own, unless ami_ids names others.

locals {
  kinds = { for name, type in local.types : name => type.gpus > 0 ? "${type.arch}_nvidia" : type.arch }
  paths = { x86_64 = "x86_64/standard", x86_64_nvidia = "x86_64/nvidia", arm64 = "arm64/standard" }
  names = { x86_64 = "x86_64-standard", x86_64_nvidia = "x86_64-nvidia", arm64 = "arm64-standard" }
  amis  = merge({ for kind, parameter in data.aws_ssm_parameter.ami : kind => nonsensitive(parameter.value) }, var.ami_ids)

  needed = toset([for kind in distinct(concat(["x86_64"], [for name in local.used_types : lookup(local.kinds, name, "x86_64")])) : kind if !contains(keys(var.ami_ids), kind)])
}

data "aws_ssm_parameter" "ami" {
  for_each = local.needed
  name = join("/", [
    "/aws/service/eks/optimized-ami/${var.kubernetes_version}/amazon-linux-2023", local.paths[each.key],
    var.ami_release == "recommended" ? "recommended" : "amazon-eks-node-al2023-${local.names[each.key]}-${var.kubernetes_version}-${var.ami_release}",
    "image_id",
  ])
}
