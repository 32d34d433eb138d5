"""From a dev server as its user asks for it to the job that it is."""

from __future__ import annotations

import pwd
import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from odcd.errors import BadRequest, NeverFits, NotImplementedYet, UnknownGpuType
from odcd.jobs import login_shell
from odcd.jobs.checks import check_reservation_name
from odcd.jobs.github_keys import check_name
from odcd.jobs.gpu_types import MAX_NODES, TypeThere
from odcd.records.fields import PRINTABLE, Comment, Image, Name
from odcd.records.job import Identity, JobSpec, ReservationSpec

LOGIN_SHELL = login_shell.script()
"""Read at import: the daemon may be unable to read its own files once it serves."""
MIN_S, MAX_S = 300, 86_400
MIN_HOURS, MAX_HOURS = 0.0833, 24
DEFAULT_HOURS = 8.0
MAX_DISK_CHARS = 50
_DISK = re.compile(r"[A-Za-z0-9_-]+")
_FEATURE = re.compile(r"[\w.:=/+-]+", re.ASCII)

Label = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PRINTABLE)]


class Reserve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dev server as its user asks for it. None means: not said."""

    gpu_type: Name | None = None
    """In any letter case. None: the only type there is."""
    gpus: Annotated[int, msgspec.Meta(ge=0, le=100_000)] | None = None
    """In all. Above one node's, whole nodes, with `distributed`. None: 1, or 0 without any GPUs."""
    hours: float = DEFAULT_HOURS
    """0.0833 to 24, counted from when it is active."""
    name: Name | None = None
    """None: made of count and type."""
    distributed: bool = False
    """Several nodes are meant."""
    disk: Annotated[str, msgspec.Meta(max_length=200, pattern=PRINTABLE)] | None = None
    """The name of one's own disk that is its home; "none" or null: none."""
    no_persist: bool = False
    """A home that ends with it."""
    recreate_env: bool = False
    """Recreate the shell's start files on the disk."""
    jupyter: bool = False
    """Start Jupyter Lab in it; of several nodes, in the first."""
    image: Image | None = None
    build: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None = None
    """Digest of a context, of POST /v1/builds: run the image that is built of it."""
    ssh: bool = False
    """SSH is to reach it: refused where dev servers are entered otherwise."""
    preserve_entrypoint: bool = False
    """Of the image: run what it runs by itself."""
    labels: dict[Label, Label] = {}
    """Of its nodes."""
    github_user: (
        Annotated[str, msgspec.Meta(min_length=1, max_length=100, pattern=PRINTABLE)] | None
    ) = None
    """The users whose SSH keys may enter."""
    account: Name | None = None
    qos: Name | None = None
    partition: Name | None = None
    booking: Name | None = None
    """Inside it only: nodes set aside for those it names."""
    comment: Comment | None = None


def seconds_of(hours: float, *, least_s: int = MIN_S) -> int:
    """Raises BadRequest unless it is between least_s and 24 hours."""
    # 0.0833, which is to be five minutes, is not quite.
    seconds = round(hours * 3600) if abs(hours) < 1e6 else -1
    if not least_s <= seconds <= MAX_S:
        least = MIN_HOURS if least_s == MIN_S else 0
        raise BadRequest(
            f"{hours:g} hours is not between {least} and {MAX_HOURS}",
            "Decimals are allowed: 0.5 is half an hour.",
        )
    return seconds


def find_type(request: Reserve, there: Sequence[TypeThere]) -> TypeThere:
    """Raises UnknownGpuType, or BadRequest when several could be meant."""
    named = {one.gpu_type.lower(): one for one in there}
    names = ", ".join(sorted(named)) or "none"
    if request.gpu_type is not None:
        found = named.get(request.gpu_type.lower())
        if found is None:
            raise UnknownGpuType(
                f'GPU type "{request.gpu_type}" does not exist', f"GPU types: {names}."
            )
        return found
    fitting = [
        one
        for one in there
        if request.gpus is None or (request.gpus > 0) == (one.gpus_per_node > 0)
    ]
    if request.gpus is None:
        fitting = [one for one in fitting if one.gpus_per_node > 0] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise NeverFits(
            "no node has the requested resources", f"`odcctl avail` shows the types: {names}."
        )
    raise BadRequest(
        "the request names no GPU type, and there are several",
        f"Name one: --gpu-type {'|'.join(sorted(one.gpu_type for one in fitting))}.",
    )


def spec_of(
    request: Reserve, there: Sequence[TypeThere], home: str, shell: str, address: str = "",
    *, terminal: bool = True,
) -> ReservationSpec:  # fmt: skip
    """The job. home, shell: the user's; address: where odcctl finds the daemon inside; terminal:
    one is in by its job's. Raises BadRequest, NeverFits, UnknownGpuType, NotImplementedYet."""
    _check(request)
    kind = find_type(request, there)
    nodes, gpus_per_node = _shape(request, kind)
    whole = gpus_per_node == kind.gpus_per_node
    share = max(1, kind.gpus_per_node)
    duration_s = seconds_of(request.hours)
    fields = msgspec.to_builtins(request)
    kept = {
        name: fields[name]
        for name in (
            "disk", "no_persist", "recreate_env", "jupyter", "image", "build",
            "preserve_entrypoint", "labels", "github_user", "distributed",
        )
        if fields[name]
    }  # fmt: skip
    if request.disk == "none":
        del kept["disk"]
    return ReservationSpec(
        script=LOGIN_SHELL,
        work_dir=home,
        name=request.name or _name(nodes * gpus_per_node, kind.gpu_type),
        environment={
            "SHELL": shell,
            "HOME": home,
            "TERM": "xterm-256color",
            **({"ODC_SERVER": address} if address else {}),
        },
        partitions=[request.partition] if request.partition else [],
        account=request.account,
        booking=request.booking,
        qos=request.qos,
        comment=request.comment,
        time_limit_s=duration_s,
        node_count=nodes,
        gpus_per_node=gpus_per_node,
        gpu_type=kind.gpu_type,
        # A whole node brings all it has; less of it, its share.
        exclusive=whole,
        ntasks_per_node=1,
        cpus_per_task=1 if whole else max(1, kind.cpus_per_node * gpus_per_node // share),
        mem_per_node_mib=0 if whole else kind.mem_per_node_mib * gpus_per_node // share,
        spool_output=True,
        pty=terminal,
        constraint=_constraint(request.labels),
        image=request.image,
        details=kept,
    )


def _check(request: Reserve) -> None:
    check_reservation_name(request.name)
    disk = request.disk if request.disk not in (None, "none") else None
    if disk is not None:
        if len(disk) > MAX_DISK_CHARS or not _DISK.fullmatch(disk):
            raise BadRequest(
                f'"{disk[:60]}" is not a valid disk name',
                f"A name has 1 to {MAX_DISK_CHARS} letters, digits, - and _.",
            )
        if request.no_persist:
            raise BadRequest(
                f'disk "{disk}" and --no-persist cannot be used together',
                "Use only one of --disk and --no-persist.",
            )
    if request.recreate_env and disk is None:
        raise BadRequest(
            "--recreate-env needs a disk, and this reservation has none", "Remove --recreate-env."
        )
    if request.build is not None and request.image is not None:
        raise BadRequest(
            "an existing image and one to be built cannot be used together",
            "Use only one of --dockerimage and --dockerfile.",
        )
    if request.preserve_entrypoint and request.image is None and request.build is None:
        raise BadRequest("--preserve-entrypoint needs an image", "Name one: --dockerimage REF.")
    if request.ssh and request.preserve_entrypoint:
        raise BadRequest(
            "SSH access needs odc's own start program, which --preserve-entrypoint does not run",
            "Leave --preserve-entrypoint out.",
        )
    if request.jupyter and request.preserve_entrypoint:
        raise BadRequest(
            "odc cannot start Jupyter Lab in an image that keeps its entrypoint",
            "Use only one of --jupyter and --preserve-entrypoint.",
        )
    if request.github_user is not None:
        check_name(request.github_user)


def _constraint(labels: Mapping[str, str]) -> str | None:
    """Nodes by what they have: nsight=true is the feature nsight, disk=nvme the feature disk-nvme.
    Raises BadRequest."""
    features = [key if value == "true" else f"{key}-{value}" for key, value in labels.items()]
    for feature in features:
        if not _FEATURE.fullmatch(feature):
            raise BadRequest(
                f'"{feature[:60]}" is not a valid node feature',
                "For example --node-label nsight=true; `odcctl nodes --json` shows the features.",
            )
    return "&".join(features) or None


def _shape(request: Reserve, kind: TypeThere) -> tuple[int, int]:
    """Nodes, and GPUs on each."""
    per_node = kind.gpus_per_node
    gpus = request.gpus if request.gpus is not None else min(1, per_node)
    if per_node == 0:
        if gpus != 0:
            raise NeverFits(
                f"nodes of type {kind.gpu_type} have no GPUs, but {gpus} were requested",
                "Leave --gpus out: a reservation of this type is a whole node.",
            )
        return 1, 0
    if gpus == 0:
        raise BadRequest(
            f"a reservation of type {kind.gpu_type} needs at least 1 GPU",
            "Request at least --gpus 1.",
        )
    if gpus <= per_node:
        return 1, gpus
    nodes = gpus // per_node
    max_nodes = min(MAX_NODES, kind.nodes)
    if gpus % per_node or nodes > max_nodes:
        several = ", ".join(str(n * per_node) for n in range(2, max_nodes + 1))
        raise BadRequest(
            f"{gpus} GPUs are more than the {per_node} of one {kind.gpu_type} node"
            + (
                f" and more than the {max_nodes * per_node} that a reservation can have"
                if nodes > max_nodes
                else f" and not a multiple of {per_node}"
            ),
            f"Request 1 to {per_node}"
            + (f"; with --distributed also {several}." if several else "."),
        )
    if not request.distributed:
        raise BadRequest(
            f"{gpus} GPUs of type {kind.gpu_type} need {nodes} nodes",
            "Add --distributed to reserve several nodes; your programs must support that.",
        )
    return nodes, per_node


def _name(gpus: int, gpu_type: str) -> str:
    return f"{gpus}x {gpu_type}" if gpus else gpu_type


def user_places(uid: int) -> tuple[str, str]:
    """The user's home folder and shell on this machine; / and sh for whom it does not know."""
    try:
        known = pwd.getpwuid(uid)
    except KeyError:
        return "/", "/bin/sh"
    return known.pw_dir or "/", known.pw_shell or "/bin/sh"


def check_local(_who: Identity, spec: JobSpec) -> None:
    """Reject options that processes of one machine cannot have. Raises NotImplementedYet."""
    if not isinstance(spec, ReservationSpec):
        return
    if spec.image is not None:
        raise BadRequest(
            "the reservation names an image, but this daemon runs processes of its machine",
            "Leave --dockerimage out; `odcd serve --executor kubernetes` runs containers.",
        )
    if "build" in spec.details:
        raise BadRequest(
            "the reservation names a build, but this daemon runs processes of its machine",
            "Leave --dockerfile out; `odcd serve --executor kubernetes` runs containers.",
        )
    if spec.details.get("no_persist"):
        raise NotImplementedYet(
            "the home folder here is your own on this machine, so it always stays",
            "Leave --no-persist out.",
        )
