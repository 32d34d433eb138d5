"""What moto answers differently from AWS, so that a second plan would show changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.eks.models import EKSBackend


def with_security_group(create: Callable[..., Any]) -> Callable[..., Any]:
    """EKS makes a security group for each cluster, and returns how access is configured."""

    def create_cluster(self: Any, **more: Any) -> Any:
        cluster = create(self, **more)
        ec2 = ec2_backends[self.account_id][self.region_name]
        subnet = ec2.get_subnet(cluster.resources_vpc_config["subnetIds"][0])
        group = ec2.create_security_group(f"eks-{cluster.name}", "of EKS", subnet.vpc_id)
        cluster.resources_vpc_config |= {
            "clusterSecurityGroupId": group.id, "vpcId": subnet.vpc_id,
        }  # fmt: skip
        cluster.access_config = {
            "authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False,
        }  # fmt: skip
        return cluster

    return create_cluster


def without_security_group(delete: Callable[..., Any]) -> Callable[..., Any]:
    def delete_cluster(self: Any, name: str) -> Any:
        cluster = delete(self, name)
        ec2 = ec2_backends[self.account_id][self.region_name]
        ec2.delete_security_group(group_id=cluster.resources_vpc_config["clusterSecurityGroupId"])
        return cluster

    return delete_cluster


def without_own_tags(create: Callable[..., Any]) -> Callable[..., Any]:
    """The tags of a launch template are not among those that it gives to instances."""

    def create_version(self: Any, data: dict[str, Any], description: str) -> Any:
        given = data.get("TagSpecifications", [])
        kept = [one for one in given if one["ResourceType"] != "launch-template"]
        return create(self, data | {"TagSpecifications": kept}, description)

    return create_version


def correct() -> None:
    EKSBackend.create_cluster = with_security_group(EKSBackend.create_cluster)
    EKSBackend.delete_cluster = without_security_group(EKSBackend.delete_cluster)
    LaunchTemplate.create_version = without_own_tags(LaunchTemplate.create_version)
