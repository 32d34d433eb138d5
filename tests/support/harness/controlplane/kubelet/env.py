"""A container's environment and command, as kubelet computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_REFERENCE = re.compile(r"\$(\$|\(([^()]+)\))")


class NotYet(Exception):
    """The container needs something that is missing; reason and message as kubelet words them."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


def expand(text: str, known: Mapping[str, str]) -> str:
    """Replaces `$(NAME)` by its value if it is known; `$$` is a dollar sign."""

    def one(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        return known.get(found[2], found[0])

    return _REFERENCE.sub(one, text)


def needed_configmaps(container: Mapping[str, Any]) -> set[str]:
    """The ConfigMaps that the environment uses."""
    names = {
        one["configMapRef"]["name"] for one in container.get("envFrom", []) if "configMapRef" in one
    }
    return names | {
        one["valueFrom"]["configMapKeyRef"]["name"]
        for one in container.get("env", [])
        if "configMapKeyRef" in one.get("valueFrom", {})
    }


def environment(
    container: Mapping[str, Any],
    configmaps: Mapping[str, Mapping[str, str]],
    field: Callable[[str], str],
    base: Mapping[str, str],
) -> dict[str, str]:
    """All variables: the base, then envFrom in order, then env in order, later ones winning.

    configmaps: name -> data, of those that exist. field: the value of a fieldRef's path.
    Raises NotYet when a ConfigMap or a key of it is missing and not optional.
    """
    made: dict[str, str] = dict(base)
    for source in container.get("envFrom", []):
        reference = source.get("configMapRef")
        if reference is None:
            raise NotYet("CreateContainerConfigError", f"envFrom {source} is not understood here")
        data = _data(reference, configmaps)
        made |= {source.get("prefix", "") + key: value for key, value in data.items()}
    for one in container.get("env", []):
        if "valueFrom" not in one:
            made[one["name"]] = expand(one.get("value", ""), made)
        elif (value := _from(one["valueFrom"], configmaps, field)) is not None:
            made[one["name"]] = value
    return made


def _from(
    source: Mapping[str, Any],
    configmaps: Mapping[str, Mapping[str, str]],
    field: Callable[[str], str],
) -> str | None:
    if "fieldRef" in source:
        return field(source["fieldRef"]["fieldPath"])
    reference = source.get("configMapKeyRef")
    if reference is None:
        raise NotYet("CreateContainerConfigError", f"valueFrom {source} is not understood here")
    data = _data(reference, configmaps)
    if reference["key"] not in data and not reference.get("optional"):
        raise NotYet(
            "CreateContainerConfigError",
            f"couldn't find key {reference['key']} in ConfigMap {reference['name']}",
        )
    return data.get(reference["key"])


def _data(
    reference: Mapping[str, Any], configmaps: Mapping[str, Mapping[str, str]]
) -> Mapping[str, str]:
    data = configmaps.get(reference["name"])
    if data is None and not reference.get("optional"):
        message = f'configmap "{reference["name"]}" not found'
        raise NotYet("CreateContainerConfigError", message)
    return data or {}


def argv(container: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    """Command and arguments, expanded; only BuildKit's image has an entrypoint here."""
    command = container.get("command") or (
        ["buildkitd"] if "/buildkit:" in container["image"] else []
    )
    arguments = [*command, *container.get("args", [])]
    if not arguments:
        raise NotYet("CreateContainerError", "no command specified")
    return [expand(word, env) for word in arguments]


def pod_field(pod: Mapping[str, Any], path: str) -> str:
    """The value of a fieldRef: `metadata.name`, `metadata.labels['odc.dev/rank']`, …"""
    if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return pod["metadata"].get(found[1], {}).get(found[2], "")
    value: Any = pod
    for word in path.split("."):
        value = value.get(word, "")
    return str(value)
