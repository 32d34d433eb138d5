"""docs/operating/workstations.md: its overlay renders; odcd accepts its settings and templates."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from odcd.executor.kubernetes.template import read_dev_template, read_template
from odcd.settings import read_settings
from tests.support.builders.manifests import FOLDER, named, render
from tests.support.harness.arguments import read_arguments

PAGE = (FOLDER.parent / "docs" / "operating" / "workstations.md").read_text("utf-8")
FILE = re.compile(r"^cat > k8s/overlays/lab/(\S+) <<'END'\n(.*?)^END$", re.M | re.S)
APPLIED = re.compile(r"^kubectl apply -f - <<'END'\n(.*?)^END$", re.M | re.S)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The overlay of the page, in a copy of k8s/."""
    shutil.copytree(FOLDER, tmp_path / "k8s")
    folder = tmp_path / "k8s" / "overlays" / "lab"
    folder.mkdir()
    for name, text in FILE.findall(PAGE):
        (folder / name).write_text(text)
    names = {path.name for path in folder.iterdir()}
    assert names == {"kustomization.yaml", "pod.yaml", "dev-pod.yaml"}
    return folder


def test_the_overlay_of_the_page_gives_odcd_its_settings_and_templates(
    kubectl: Path, lab: Path
) -> None:
    manifests = render(kubectl, lab)
    deployment = named(manifests, "Deployment", "odcd")
    spec = deployment["spec"]["template"]["spec"]
    container = spec["containers"][0]
    config = container["envFrom"][0]["configMapRef"]["name"]
    settings = named(manifests, "ConfigMap", config)["data"]
    own = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    read = read_settings(read_arguments(container["args"]), settings | own).kubernetes
    mount = next(each for each in container["volumeMounts"] if each["name"] == "template")
    volume = next(each for each in spec["volumes"] if each["name"] == "template")
    files = named(manifests, "ConfigMap", volume["configMap"]["name"])["data"]
    for path in (read.pod_template, read.dev_pod_template):
        assert path is not None
        assert (str(path.parent), path.name in files) == (mount["mountPath"], True)
    assert named(manifests, "DaemonSet", "nvidia-device-plugin")


def test_the_templates_of_the_page_are_accepted_and_mount_the_claim_that_it_creates(
    lab: Path,
) -> None:
    jobs = read_template(lab / "pod.yaml")
    servers = read_dev_template(lab / "dev-pod.yaml", jobs)
    (applied,) = APPLIED.findall(PAGE)
    volume, claim = yaml.safe_load_all(applied)
    assert volume["spec"]["claimRef"] == claim["metadata"] | {"namespace": "gpu-batch"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    for template, path in ((jobs, "/home"), (servers, "/users")):
        pod = {"metadata": {}, "spec": {"containers": [{}], "volumes": [{"name": "home"}]}}
        spec = template.apply(pod)["spec"]
        added = spec["volumes"][-1]
        assert added["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert spec["containers"][0]["volumeMounts"] == [{"name": added["name"], "mountPath": path}]
        assert len({each["name"] for each in spec["volumes"]}) == 2, "names of volumes differ"
