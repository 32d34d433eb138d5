# The script runs before nodeadm starts containerd and kubelet. cloud-init runs it once, so all that it sets outlives a reboot.

locals {
  script = templatefile("${path.module}/node.sh", {
    gpu                   = local.gpu
    efa                   = var.type.efa > 0
    fabric_manager        = var.type.fabric_manager
    profiling             = var.profiling
    huge_pages            = var.huge_pages_2_mib
    efa_installer_version = var.efa_installer_version == null ? "" : var.efa_installer_version
    prepull_images        = var.prepull_images
    registries            = join(" ", [for registry, address in var.registries : "${registry}=${address}"])
    registries_script     = file("${path.module}/../../../k8s/nodes/registries.sh")
  })

  node_config = {
    apiVersion = "node.eks.aws/v1alpha1"
    kind       = "NodeConfig"
    spec = merge({
      cluster = {
        name                 = var.cluster.name
        apiServerEndpoint    = var.cluster.endpoint
        certificateAuthority = var.cluster.certificate_authority
        cidr                 = var.cluster.service_cidr
      }
      kubelet = {
        config = merge({
          containerLogMaxSize = "100Mi"
          registerWithTaints  = local.taints
        }, var.static_cpus ? { cpuManagerPolicy = "static" } : {})
        flags = ["--node-labels=${join(",", [for key, value in local.labels : "${key}=${value}"])}"]
      }
    }, var.type.nvme ? { instance = { localStorage = { strategy = "RAID0" } } } : {})
  }

  user_data = join("\n", [
    "MIME-Version: 1.0",
    "Content-Type: multipart/mixed; boundary=\"odc\"",
    "",
    "--odc",
    "Content-Type: text/x-shellscript; charset=\"us-ascii\"",
    "",
    local.script,
    "--odc",
    "Content-Type: application/node.eks.aws",
    "",
    yamlencode(local.node_config),
    "--odc--",
    "",
  ])
}
