"""The settings for images built from users' Dockerfiles; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from odcd.errors import BadRequest

_REPOSITORY = re.compile(
    r"(?=.{1,200}$)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    r"(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)+"
)
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_HOST = re.compile(r"(?=.{1,200}$)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?")
_LABEL = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_./]{0,252}=[A-Za-z0-9._-]{0,63}")
IMAGE = "docker.io/moby/buildkit:v0.34.2-rootless"
LIMIT = timedelta(minutes=15)
"""The time limit of a build."""
_IMAGE = re.compile(r"[A-Za-z0-9._:/-]*buildkit(?::v\d+\.\d+\.\d+-rootless|@sha256:[0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    registry: str | None = None
    """ODC_BUILD_REGISTRY. The repository for images built from users' Dockerfiles, to push to and
    pull from: HOST/PATH. Default none: --dockerfile is rejected."""
    registry_http: bool = False
    """ODC_BUILD_REGISTRY_HTTP. on: the registry uses HTTP, which one inside the cluster may.
    Default off."""
    secret: str | None = None
    """ODC_BUILD_SECRET. A secret of type kubernetes.io/dockerconfigjson in the namespace of builds,
    with which all builds push. A build that escapes BuildKit could use it for the images of other
    users: prefer ODC_BUILD_KEY. Default none."""
    key: Path | None = None
    """ODC_BUILD_KEY. A folder with tls.key and tls.crt, with which odcd signs a credential for each
    build: it allows pushes to the repository of the build's user only. The registry must trust the
    certificate, as that of components/registry-builds does; caches require it. Default none."""
    push: str | None = None
    """ODC_BUILD_PUSH. HOST or HOST:PORT by which builds push, if it differs from that of
    ODC_BUILD_REGISTRY, by which nodes pull. Default none."""
    user_namespaces: bool = False
    """ODC_BUILD_USER_NAMESPACES. on: the pods of builds have users of their own (hostUsers false).
    All nodes for builds must give a pod 196608 users (userNamespaces.idsPerPod of kubelet), because
    rootless BuildKit maps users beyond the usual 65536. Default off."""
    namespace: str = "gpu-builds"
    """ODC_NAMESPACE_BUILDS. The namespace for builds. Default gpu-builds."""
    image: str = IMAGE
    """ODC_BUILDKIT_IMAGE. The image of rootless BuildKit, by digest or a version: a mirror of
    docker.io/moby/buildkit:v0.34.2-rootless, which is the default."""
    nodes: tuple[str, ...] = ()
    """ODC_BUILD_NODES. Labels KEY=VALUE, separated by commas, that a node needs to run builds, in
    addition to being amd64 without GPUs. Default none."""
    at_once: int = 8
    """ODC_BUILDS_AT_ONCE. The maximum number of concurrent builds. Default 8."""

    @property
    def push_host(self) -> str:
        """The host and port by which builds push."""
        return self.push or (self.registry or "").partition("/")[0]

    def target(self) -> str:
        """Raises BadRequest if no registry is set."""
        if self.registry is None:
            raise BadRequest(
                "this daemon builds no images: no registry is set for them",
                "Use --dockerimage with an image that already exists. To allow builds, an operator "
                "sets ODC_BUILD_REGISTRY.",
            )
        return self.registry


def no_target() -> str:
    """For a daemon without a cluster. Raises BadRequest."""
    raise BadRequest(
        "this daemon runs jobs on its own machine, so it builds no images",
        "Leave --dockerfile out; `odcd serve --executor kubernetes` runs containers.",
    )


def read_builds(environment: Mapping[str, str]) -> BuildSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable is not set."""
    given = {name: text for name, text in environment.items() if text}
    default = BuildSettings()
    nodes = tuple(word.strip() for word in given.get("ODC_BUILD_NODES", "").split(",") if word)
    for label in nodes:
        if not _LABEL.fullmatch(label):
            raise BadRequest(
                f'ODC_BUILD_NODES: "{label[:100]}" is not a label',
                "For example odc.dev/builds=true.",
            )
    at_once = given.get("ODC_BUILDS_AT_ONCE", str(default.at_once))
    if not at_once.isdecimal() or not 1 <= int(at_once) <= 100:
        raise BadRequest(f'ODC_BUILDS_AT_ONCE="{at_once[:100]}" is not a number', "Give 1 to 100.")
    key = given.get("ODC_BUILD_KEY")
    if key is not None and "ODC_BUILD_SECRET" in given:
        raise BadRequest(
            "ODC_BUILD_KEY and ODC_BUILD_SECRET are both set",
            "Builds push with one credential: remove ODC_BUILD_SECRET.",
        )
    return BuildSettings(
        registry=_matched(
            given, "ODC_BUILD_REGISTRY", None, _REPOSITORY,
            "a repository", "registry.example.com/odc/builds, without a tag",
        ),
        registry_http=_switch(given, "ODC_BUILD_REGISTRY_HTTP"),
        key=Path(key).expanduser() if key is not None else None,
        push=_matched(given, "ODC_BUILD_PUSH", None, _HOST, "a host", "registry.example.com:5001"),
        user_namespaces=_switch(given, "ODC_BUILD_USER_NAMESPACES"),
        secret=_matched(given, "ODC_BUILD_SECRET", None, _NAME, "a secret's name", "push"),
        namespace=_matched(
            given, "ODC_NAMESPACE_BUILDS", default.namespace, _NAME, "a namespace's name",
            default.namespace,
        )
        or default.namespace,
        image=_matched(
            given, "ODC_BUILDKIT_IMAGE", default.image, _IMAGE, "rootless BuildKit", IMAGE
        )
        or default.image,
        nodes=nodes,
        at_once=int(at_once),
    )  # fmt: skip


def _switch(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "off")
    if text not in ("on", "off"):
        raise BadRequest(f'{name}="{text[:100]}" is neither on nor off', "Use on or off.")
    return text == "on"


def _matched(
    given: Mapping[str, str], name: str, default: str | None, form: re.Pattern[str], what: str,
    example: str,
) -> str | None:  # fmt: skip
    text = given.get(name, default)
    if text is not None and not form.fullmatch(text):
        raise BadRequest(f'{name}="{text[:100]}" is not {what}', f"For example {example}.")
    return text
