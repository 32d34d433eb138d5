"""Write an overlay for kustomize from the outputs of an environment:

tofu output -json overlay | python3 overlay.py ../k8s/overlays/aws-production
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]
BASE_HOSTS = (
    "odcd,odcd.gpu-controlplane,odcd.gpu-controlplane.svc,odcd.gpu-controlplane.svc.cluster.local"
)
HEAD = "# Written by `make -C tofu overlay`: change the var file, and run it again.\n"
CONTROL = "gpu-controlplane"
ODCD = {"app.kubernetes.io/name": "odc", "app.kubernetes.io/component": "daemon"}


def settings(values: Json) -> dict[str, str]:
    """The variables of odcd that differ from those of the production overlay."""
    exported = values["history_bucket"] and values["keep_jobs_days"]
    found = {
        "ODC_AWS_REGION": values["region"],
        "ODC_DISK_IOPS": str(values["disk_iops"]),
        "ODC_DISK_MBPS": str(values["disk_mib_s"]),
        "ODC_DISK_KMS_KEY": values["disks_key_arn"],
        "ODC_EFS_ID": values["file_system_id"],
        "ODC_CCACHE_CLAIM": "ccache" if values["shared_ccache"] else None,
        "ODC_FENCE": None if values["fence"] == "off" else values["fence"],
        "ODC_ELASTIC_CLUSTER": values["elastic"] and values["name"],
        "ODC_KEEP_JOBS_DAYS": str(values["keep_jobs_days"] or ""),
        "ODC_HISTORY_TARGET": exported and f"s3://{values['history_bucket']}/odc",
        "ODC_OPERATORS": ",".join(values["operators"]),
        "ODC_AWS_ROLES": ",".join(values["aws_roles"]),
        "ODC_STS_ENDPOINT": values["aws_roles"] and f"https://sts.{values['region']}.amazonaws.com",
        "ODC_IMAGE": values["job_image"],
        "ODC_DEV_IMAGE": values["dev_image"],
        "ODC_URL": values["url"],
        "ODC_HOSTS": values["host"] and f"{BASE_HOSTS},{values['host']}",
        "ODC_TRUSTED_PROXIES": values["url"] and ",".join(values["balancer_cidrs"]),
    }
    return {name: value for name, value in found.items() if value}


def patches(values: Json) -> Iterator[Json]:
    role = {"eks.amazonaws.com/role-arn": values["odcd_role_arn"]}
    yield {
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "odcd", "namespace": CONTROL, "annotations": role},
    }  # fmt: skip
    if values["url"]:
        yield {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "odcd", "namespace": CONTROL},
            # Only nodes with a replica answer, and odcd sees the address of the load balancer.
            "spec": {"type": "NodePort", "externalTrafficPolicy": "Local", "ports": [
                {"name": "http", "port": 7070, "nodePort": values["node_port"]},
            ]},
        }  # fmt: skip
    cluster = {
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster",
        "metadata": {"name": "odc-db", "namespace": CONTROL},
    }  # fmt: skip
    if values["database_kind"] == "rds":
        yield {"$patch": "delete", **cluster}
        for name in ("odcd-to-postgresql", "postgresql"):
            yield {
                "$patch": "delete", "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "metadata": {"name": name, "namespace": CONTROL},
            }  # fmt: skip
    else:
        backup = {"eks.amazonaws.com/role-arn": values["backup_role_arn"]}
        plugin = {
            "name": "barman-cloud.cloudnative-pg.io", "isWALArchiver": True,
            "parameters": {"barmanObjectName": "odc-db"},
        }  # fmt: skip
        yield cluster | {"spec": {
            "serviceAccountTemplate": {"metadata": {"annotations": backup}}, "plugins": [plugin],
        }}  # fmt: skip
    efa = {
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "aws-efa-k8s-device-plugin", "namespace": "kube-system"},
    }  # fmt: skip
    if not values["efa_instance_types"]:
        yield {"$patch": "delete", **efa}
    else:
        wanted = {
            "key": "node.kubernetes.io/instance-type", "operator": "In",
            "values": values["efa_instance_types"],
        }  # fmt: skip
        terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        yield efa | {"spec": {"template": {"spec": {"affinity": affinity}}}}


def resources(values: Json) -> Iterator[Json]:
    yield {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {
            "name": "odc-gp3",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
        "parameters": {"type": "gp3", "encrypted": "true", "kmsKeyId": values["disks_key_arn"]},
    }  # fmt: skip
    if values["url"]:
        blocks = [{"ipBlock": {"cidr": cidr}} for cidr in values["balancer_cidrs"]]
        yield _network("ingress-to-odcd", ingress=[
            {"from": blocks, "ports": [{"port": "http", "protocol": "TCP"}]},
        ])  # fmt: skip
    if values["database_kind"] == "rds":
        yield _network("odcd-to-rds", egress=[{
            "to": [{"ipBlock": {"cidr": values["vpc_cidr"]}}],
            "ports": [{"port": 5432, "protocol": "TCP"}],
        }])  # fmt: skip
    else:
        yield from _backup(values)
    if values["shared_ccache"]:
        yield from _ccache(values)


def _network(name: str, **rules: list[Json]) -> Json:
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": CONTROL},
        "spec": {
            "podSelector": {"matchLabels": ODCD},
            "policyTypes": [name.capitalize() for name in rules], **rules,
        },
    }  # fmt: skip


def _backup(values: Json) -> Iterator[Json]:
    meta = {"name": "odc-db", "namespace": CONTROL}
    yield {
        "apiVersion": "barmancloud.cnpg.io/v1", "kind": "ObjectStore", "metadata": meta,
        "spec": {
            "retentionPolicy": f"{values['backup_days']}d",
            "configuration": {
                "destinationPath": f"s3://{values['backup_bucket']}/odc-db",
                "s3Credentials": {"inheritFromIAMRole": True},
                "wal": {"compression": "gzip"},
            },
        },
    }  # fmt: skip
    yield {
        "apiVersion": "postgresql.cnpg.io/v1", "kind": "ScheduledBackup", "metadata": meta,
        "spec": {
            "schedule": "0 0 3 * * *", "cluster": {"name": "odc-db"}, "method": "plugin",
            "pluginConfiguration": {"name": "barman-cloud.cloudnative-pg.io"},
        },
    }  # fmt: skip


def _ccache(values: Json) -> Iterator[Json]:
    size, modes = {"storage": "1Ti"}, ["ReadWriteMany"]
    handle = f"{values['file_system_id']}::{values['ccache_access_point_id']}"
    yield {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "ccache"},
        "spec": {
            "capacity": size, "accessModes": modes, "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "gpu-dev", "name": "ccache"},
            "csi": {"driver": "efs.csi.aws.com", "volumeHandle": handle},
        },
    }  # fmt: skip
    yield {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "ccache", "namespace": "gpu-dev"},
        "spec": {
            "accessModes": modes, "storageClassName": "", "volumeName": "ccache",
            "resources": {"requests": size},
        },
    }  # fmt: skip


def kustomization(values: Json) -> Json:
    found: Json = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["../monitoring" if values["monitoring"] else "../production", "aws.yaml"],
        "configMapGenerator": [{
            "name": "odcd", "namespace": CONTROL, "behavior": "merge", "envs": ["settings.env"],
        }],
        "patches": [{"path": "patches.yaml"}],
    }  # fmt: skip
    if values["elastic"]:
        # odcd taints nodes that it removes.
        found["components"] = ["../../components/fence"]
    if values["image"]:
        image = {"name": "ghcr.io/example/odcd", "newName": values["image"]}
        found["images"] = [image | ({"newTag": values["image_tag"]} if values["image_tag"] else {})]
    return found


def write(values: Json, folder: Path) -> None:
    """Replaces files that an earlier call wrote; others in the folder stay."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.env").write_text(
        HEAD + "".join(f"{name}={value}\n" for name, value in settings(values).items()), "utf-8"
    )
    for name, objects in (
        ("patches.yaml", patches(values)), ("aws.yaml", resources(values)),
        ("kustomization.yaml", [kustomization(values)]),
    ):  # fmt: skip
        # JSON is YAML.
        texts = [json.dumps(one, indent=2) + "\n" for one in objects]
        (folder / name).write_text(HEAD + "---\n".join(texts), "utf-8")


if __name__ == "__main__":
    try:
        write(json.load(sys.stdin), Path(sys.argv[1]))
    except json.JSONDecodeError:
        sys.exit("overlay: there are no outputs yet. Apply the environment first.")
    except KeyError as error:
        sys.exit(f"overlay: the outputs lack {error}. Apply the environment again.")
