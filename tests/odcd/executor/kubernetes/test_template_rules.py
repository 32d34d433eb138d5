"""A pod template that would give users rights on nodes, or other users' files, is refused with the
name of the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.executor.kubernetes.template import read_template

WRONG = {
    "securityContext: {privileged: true}": "securityContext",
    "containers: [{securityContext: {privileged: true}}]": "containers[0].securityContext",
    "spec: {hostNetwork: true}": "spec.hostNetwork",
    "hostPID: true": "hostPID",
    "volumes: [{name: a, hostPath: {path: /}}]": "volumes[0].hostPath",
    "volumes: [{name: b, emptyDir: {}}, {name: a, hostPath: {path: /etc}}]": "volumes[1].hostPath",
    "volumes: [{name: a, persistentVolumeClaim: {claimName: odc-volume-7}}]": (
        "volumes[0].persistentVolumeClaim.claimName"
    ),
    "volumes: [{name: a, persistentVolumeClaim: {claimName: odc-personal-1001}}]": (
        "volumes[0].persistentVolumeClaim.claimName"
    ),
    "volumes: [{name: a, secret: {secretName: odc-db-app}}]": "volumes[0].secret",
    "volumes: [{name: a, csi: {driver: d}}]": "volumes[0].csi",
    "volumes: [{name: a, projected: {sources: []}}]": "volumes[0].projected",
    "schedulerName: mine": "schedulerName",
    "spec: {schedulerName: mine}": "spec.schedulerName",
    "nodeName: gpu-1": "nodeName",
    "spec: {nodeName: gpu-1}": "spec.nodeName",
    "volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]": (
        "volumeMounts[0].mountPropagation"
    ),
    "volumeMounts: [{name: a, mountPath: /odc/job}]": "volumeMounts[0].mountPath",
    "volumeMounts: [{name: a, mountPath: /dev/shm}]": "volumeMounts[0].mountPath",
    "env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]": "env[0].name",
    "tolerations: [{operator: Exists}]": "tolerations[0]",
    "labels: {odc.dev/kind: reservation}": "labels.odc.dev/kind",
    "annotations: {odc.dev/job-id: '7'}": "annotations.odc.dev/job-id",
    "annotations: {container.apparmor.security.beta.kubernetes.io/job: unconfined}": (
        "annotations.container.apparmor.security.beta.kubernetes.io/job"
    ),
    "serviceAccountName: admin": "serviceAccountName",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_dangerous_template_is_refused_with_the_name_of_the_field(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    with pytest.raises(BadRequest) as caught:
        read_template(path)
    assert f" has {WRONG[text]}," in caught.value.message
    assert str(path) in caught.value.message


def test_the_additions_of_a_site_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(
        "volumes:\n"
        "  - {name: data, persistentVolumeClaim: {claimName: data}}\n"
        "  - {name: scratch, emptyDir: {sizeLimit: 10Gi}}\n"
        "  - {name: home, nfs: {server: fs.example.com, path: /home}}\n"
        "volumeMounts: [{name: data, mountPath: /data, readOnly: true}]\n"
        "env: [{name: HTTPS_PROXY, value: 'http://proxy.example.com:3128'}]\n"
        "tolerations: [{key: dedicated, operator: Exists}]\n"
        "imagePullSecrets: [{name: pull}]\n"
        "labels: {team: ml}\n"
        "annotations: {sidecar.istio.io/inject: 'false'}\n"
    )
    assert read_template(path).additions["labels"] == {"team": "ml"}
