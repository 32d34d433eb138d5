"""Checks that a job can run as pods; the API calls them at submit."""

from __future__ import annotations

import re

from odcd.builds.repositories import check_owner
from odcd.builds.settings import BuildSettings
from odcd.errors import BadRequest, NotAllowed, NotImplementedYet, TooLarge
from odcd.executor.kubernetes.images import check_image
from odcd.executor.kubernetes.launch import MAX_PACKED_BYTES, script_data
from odcd.executor.output import check_patterns
from odcd.records.job import Identity, JobSpec, ReservationSpec

MAX_VARIABLES_BYTES = 512 * 1024
"""For environment and arguments: they are part of every pod, which is limited to 1.5 MiB."""
_VARIABLE = re.compile(r"^[ -<>-~]+$")


class JobCheck:
    def __init__(
        self, default_image: str | None, dev_image: str | None = None,
        builds: BuildSettings | None = None,
    ) -> None:  # fmt: skip
        """dev_image: for dev servers that name none."""
        self._builds = builds or BuildSettings()
        self._default_image = default_image
        self._dev_image = dev_image

    def __call__(self, who: Identity, spec: JobSpec) -> None:
        """Raises NotAllowed, BadRequest, TooLarge or NotImplementedYet."""
        if who.uid == 0 or who.gid == 0:
            raise NotAllowed(
                "jobs on Kubernetes run as the user who submits them, and not as root",
                "Submit as another user, or with a token: odcd token USER.",
            )
        if spec.image is not None:
            check_owner(spec.image, self._builds, who.uid)
        if isinstance(spec, ReservationSpec):
            self._check_dev_server(spec)
            return
        check_patterns(who, spec)
        if spec.image is not None:
            check_image(spec.image, "the image")
        elif self._default_image is None:
            raise BadRequest(
                "the job names no container image, and this cluster has no default",
                "Name one: --container-image pytorch/pytorch:2.9.1-cuda13.0-cudnn9-runtime. "
                "Operators set the default with ODC_IMAGE.",
            )
        if spec.pty:
            raise NotImplementedYet(
                "odc does not support terminals for jobs on Kubernetes yet",
                "Leave --pty out; `odcctl logs ID -f` follows the output of a job.",
            )
        self._check_variables(spec)
        # Short scripts always fit, without a trial compression.
        if len(spec.script) > MAX_PACKED_BYTES // 4 and script_data(spec.script) is None:
            raise TooLarge(
                f"the script has {len(spec.script.encode())} bytes, and more than "
                f"{MAX_PACKED_BYTES} when compressed; a ConfigMap has no room for it",
                "Move large parts into the image or a volume, and call them from the script.",
            )

    def _check_dev_server(self, spec: ReservationSpec) -> None:
        if spec.image is not None:
            check_image(spec.image, "the image")
        elif self._dev_image is None and "build" not in spec.details:
            raise BadRequest(
                "the dev server names no container image, and this cluster has no default",
                "Name one: --dockerimage pytorch/pytorch:2.9.1-cuda13.0-cudnn9-devel. "
                "Operators set the default with ODC_DEV_IMAGE.",
            )

    def _check_variables(self, spec: JobSpec) -> None:
        for name in spec.environment:
            if not _VARIABLE.match(name):
                raise BadRequest(
                    f"the environment variable {name[:60]!a} has a name that Kubernetes refuses",
                    "Use printable ASCII characters except =, or leave it out with --export.",
                )
        size = sum(len(name) + len(value.encode()) for name, value in spec.environment.items())
        size += sum(len(argument.encode()) for argument in spec.args)
        if size > MAX_VARIABLES_BYTES:
            raise TooLarge(
                f"environment and arguments have {size} bytes, more than a pod may carry "
                f"({MAX_VARIABLES_BYTES})",
                "Pass fewer variables: --export=NONE, or --export with a list.",
            )


def refuse_images(who: Identity, spec: JobSpec) -> None:
    """For executors without containers."""
    if spec.image is not None:
        raise BadRequest(
            "the job names a container image, but this daemon runs processes of its machine",
            "Leave --container-image out; `odcd serve --executor kubernetes` runs containers.",
        )
