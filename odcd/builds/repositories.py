"""The repositories of built images. With a credential for each build, each user has one, so that
users share no layer, tag or cache."""

from __future__ import annotations

import re

from odcd.builds.settings import BuildSettings
from odcd.errors import NotAllowed
from odcd.records.build import Build

_NAME = re.compile(r"(?P<name>[^@]*?)(?::[\w][\w.-]*)?(?:@.*)?")


def path_of(repository: str) -> str:
    """Without the registry's host."""
    return repository.partition("/")[2]


def shared_push(build: Build, own: BuildSettings) -> str:
    """The repository of all builds, by the name that builds push to."""
    return f"{own.push_host}/{path_of(build.target)}" if own.push else build.target


def repository_of(build: Build, own: BuildSettings, *, push: bool = False) -> str:
    """The repository of the build's image. push: by the name that builds push to. A registry that
    accepts one credential for all builds may not create repositories, so there it is the same for
    all."""
    shared = shared_push(build, own) if push else build.target
    return f"{shared}/u{build.uid}" if own.key is not None else shared


def check_owner(image: str, own: BuildSettings, uid: int) -> None:
    """Images of Dockerfiles are for their own users: others neither read them nor run their code.
    The registry may have several names, so the path alone counts. Raises NotAllowed."""
    if own.registry is None:
        return
    found = _NAME.fullmatch(image)
    # A host has a dot, a port, or is localhost; other first parts belong to the path.
    host, _, rest = (found["name"] if found else image).partition("/")
    path = rest if "." in host or ":" in host or host == "localhost" else f"{host}/{rest}"
    shared = path_of(own.registry)
    mine = f"{shared}/u{uid}" if own.key is not None else None
    if (path == shared or path.startswith(f"{shared}/")) and path != mine:
        raise NotAllowed(
            f'the image "{image[:200]}" was built from a Dockerfile for another user',
            "Build your own with --dockerfile, or name an image of another repository.",
        )
