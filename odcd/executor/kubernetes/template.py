"""A site's additions to every pod, from a YAML file: shared file systems, pull secrets,
selectors. Dev servers may have a template of their own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from odcd.errors import BadRequest
from odcd.executor.kubernetes.template_rules import check_additions

POD_LISTS = ("volumes", "tolerations", "imagePullSecrets")
CONTAINER_LISTS = ("volumeMounts", "env")
POD_MAPS = ("nodeSelector",)
META_MAPS = ("labels", "annotations")
PLACEMENT = ("tolerations", "nodeSelector")
"""They decide which nodes accept pods, so they are the same for jobs and dev servers."""
EXAMPLE = "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """additions: keys of a pod's spec (volumes, tolerations, imagePullSecrets, nodeSelector), of
    its container (volumeMounts, env) and of its metadata (labels, annotations). Settings of odc
    itself are not changed."""

    additions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def apply(self, pod: Json) -> Json:
        if not self.additions:
            return pod
        added: Json = copy.deepcopy(dict(self.additions))
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        for key in POD_LISTS:
            if key in added:
                spec[key] = _joined(spec.get(key, []), added[key])
        for key in CONTAINER_LISTS:
            if key in added:
                container[key] = _joined(container.get(key, []), added[key])
        for key in POD_MAPS:
            if key in added:
                spec[key] = added[key] | spec.get(key, {})
        for key in META_MAPS:
            if key in added:
                pod["metadata"][key] = added[key] | pod["metadata"].get(key, {})
        return pod


def read_dev_template(path: Path, jobs: PodTemplate) -> PodTemplate:
    """The template of dev servers, which are placed like jobs. Raises BadRequest."""
    own = read_template(path)
    for key in PLACEMENT:
        if key in own.additions:
            raise BadRequest(
                f'the pod template {path} of dev servers has "{key}"',
                "Set it in ODC_POD_TEMPLATE: it applies to jobs and to dev servers.",
            )
    placement = {key: jobs.additions[key] for key in PLACEMENT if key in jobs.additions}
    return PodTemplate({**own.additions, **placement})


def read_template(path: Path) -> PodTemplate:
    """Raises BadRequest, naming the field that is not accepted."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadRequest(
            f"the pod template {path} cannot be read: {error}", f"For example: {EXAMPLE}"
        ) from error
    if content is None:
        return PodTemplate()
    allowed = (*POD_LISTS, *CONTAINER_LISTS, *POD_MAPS, *META_MAPS)
    if not isinstance(content, dict):
        raise BadRequest(f"the pod template {path} is not a mapping", f"For example: {EXAMPLE}")
    additions = cast("dict[str, Any]", content)
    check_additions(additions, f"the pod template {path}")
    for key, value in additions.items():
        if key not in allowed:
            raise BadRequest(
                f'the pod template {path} has "{key}", which odc does not accept',
                f"It may have: {', '.join(allowed)}.",
            )
        expected = dict if key in (*POD_MAPS, *META_MAPS) else list
        if not isinstance(value, expected):
            raise BadRequest(
                f'"{key}" of the pod template {path} is not a {expected.__name__}',
                f"For example: {EXAMPLE}",
            )
    return PodTemplate(additions)


def _joined(own: list[Json], added: list[Json]) -> list[Json]:
    """Join two lists, odc's first; for equal names odc's entry is kept."""
    names = {one["name"] for one in own if "name" in one}
    return own + [one for one in added if one.get("name") not in names or "name" not in one]
