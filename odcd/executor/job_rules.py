"""The rules for jobs of the local executor, set by the operator and read when a daemon starts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from odcd.errors import BadRequest, NotAllowed
from odcd.executor.hook_settings import HOOK_TIMEOUT, read_hooks
from odcd.runner import uids
from odcd.runner.rules import (
    MIN_UID,
    OUTPUT_MIB,
    OUTPUT_TOTAL_MIB,
    Limit,
    Rules,
    default_limits,
)

MAX_UID = 2**32 - 3
MAX_MIB = 1024 * 1024 * 1024
_LIMIT = re.compile(r"^(?P<name>[a-z]+)=(?P<soft>[^:=]+)(?::(?P<hard>[^:=]+))?$")
_AMOUNT = re.compile(r"^(\d{1,15})([KMGT]?)$")
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    min_uid: int = MIN_UID
    """ODC_MIN_UID. The lowest user id whose jobs a daemon started by root runs. Lower ids are
    system accounts; the user `nobody` (65534) is excluded, too. 0: every account except root and
    the daemon's own. Default 1000."""
    allow_root: bool = False
    """--allow-root-jobs, ODC_ALLOW_ROOT_JOBS=1. Allow jobs to run as root. Default no."""
    limits: dict[str, Limit] = field(default_factory=dict)
    """ODC_JOB_LIMITS. Process limits of jobs that differ from the defaults: NAME=SOFT[:HARD],
    separated by commas, with K, M, G or T, or unlimited. Example:
    nofile=4096:1048576,core=unlimited. Default none."""
    output_mib: int = OUTPUT_MIB
    """ODC_OUTPUT_MIB. How much output of one job odc keeps (`odcctl run`, and jobs with a
    terminal), in MiB; the rest is dropped and the job continues. Default 1024."""
    output_total_mib: int = OUTPUT_TOTAL_MIB
    """ODC_OUTPUT_TOTAL_MIB. How much output odc keeps of all jobs, in MiB. Above this, it deletes
    output of ended jobs of the user with the most output, oldest first. If root runs odcd, the
    running jobs of one user keep at most half. On Kubernetes this is the compressed output of ended
    members in the database. Default 10240."""
    prolog: str | None = None
    """ODC_PROLOG. A program that runs on each node of a job before the job's first process there,
    as the user who started odcd. If it fails, the node is drained and the job is requeued. Not on
    Kubernetes. Default none."""
    epilog: str | None = None
    """ODC_EPILOG. A program that runs on each node of a job after the job's last process, as the
    user who started odcd. If it fails, the node is drained. Not on Kubernetes. Default none."""
    task_prolog: str | None = None
    """ODC_TASK_PROLOG. A program that runs before each batch script and each task of a step, as the
    job's user. Its output can change the task's environment. Not on Kubernetes. Default none."""
    task_epilog: str | None = None
    """ODC_TASK_EPILOG. A program that runs after each batch script and each task of a step, as the
    job's user. Not on Kubernetes. Default none."""
    prolog_timeout: timedelta = HOOK_TIMEOUT
    """ODC_PROLOG_TIMEOUT_S. A prolog that runs longer is killed and has failed. Default 60 s."""
    epilog_timeout: timedelta = HOOK_TIMEOUT
    """ODC_EPILOG_TIMEOUT_S. An epilog that runs longer is killed and has failed. Default 60 s."""
    task_prolog_timeout: timedelta = HOOK_TIMEOUT
    """ODC_TASK_PROLOG_TIMEOUT_S. A task prolog that runs longer is killed and has failed. Default
    60 s."""
    task_epilog_timeout: timedelta = HOOK_TIMEOUT
    """ODC_TASK_EPILOG_TIMEOUT_S. A task epilog that runs longer is killed and has failed. Default
    60 s."""

    @property
    def has_hooks(self) -> bool:
        return any((self.prolog, self.epilog, self.task_prolog, self.task_epilog))

    def rules(self) -> Rules:
        """The rules in the runner's format."""
        return Rules(
            min_uid=self.min_uid,
            allow_root=self.allow_root,
            limits={**default_limits(), **self.limits},
            output_mib=self.output_mib,
            output_total_mib=self.output_total_mib,
            prolog=self.prolog,
            epilog=self.epilog,
            task_prolog=self.task_prolog,
            task_epilog=self.task_epilog,
            prolog_timeout_s=self.prolog_timeout.total_seconds(),
            epilog_timeout_s=self.epilog_timeout.total_seconds(),
            task_prolog_timeout_s=self.task_prolog_timeout.total_seconds(),
            task_epilog_timeout_s=self.task_epilog_timeout.total_seconds(),
        )


def check_user(rules: Rules, uid: int) -> None:
    """A daemon started by root checks at submit what its runner would refuse. Raises NotAllowed."""
    why = uids.refusal(rules, uid)
    if why is None:
        return
    hint = "Submit as another user"
    if uid == 0:
        hint += ", or let root's jobs run: odcd up --allow-root-jobs."
    else:
        hint += "; operators set the lowest user id with ODC_MIN_UID."
    raise NotAllowed(f"job not accepted: {why}", hint)


def read_jobs(
    environment: Mapping[str, str], *, allow_root: bool, local: bool = True
) -> JobSettings:
    """allow_root: --allow-root-jobs. local: jobs run on this machine. Raises BadRequest with the
    setting that is wrong."""
    root = environment.get("ODC_ALLOW_ROOT_JOBS") or "0"
    if root not in ("0", "1"):
        raise BadRequest(f'ODC_ALLOW_ROOT_JOBS="{root[:100]}" is neither 0 nor 1', "Give 1 or 0.")
    output_mib = _number(environment, "ODC_OUTPUT_MIB", OUTPUT_MIB, 1, MAX_MIB)
    total_mib = _number(environment, "ODC_OUTPUT_TOTAL_MIB", OUTPUT_TOTAL_MIB, 1, MAX_MIB)
    return JobSettings(
        min_uid=_number(environment, "ODC_MIN_UID", MIN_UID, 0, MAX_UID),
        allow_root=allow_root or root == "1",
        limits=parse_limits(environment.get("ODC_JOB_LIMITS") or ""),
        output_mib=output_mib,
        output_total_mib=total_mib,
        **read_hooks(environment, local=local),
    )


def parse_limits(text: str) -> dict[str, Limit]:
    """Raises BadRequest."""
    limits: dict[str, Limit] = {}
    known = default_limits()
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _LIMIT.match(part)
        if found is None or found["name"] not in known:
            raise BadRequest(
                f'ODC_JOB_LIMITS: "{part[:100]}" is not NAME=SOFT[:HARD]',
                f"The names are {', '.join(known)}; for example nofile=4096:1048576.",
            )
        soft = _amount(part, found["soft"])
        hard = _amount(part, found["hard"]) if found["hard"] else soft
        if hard is not None and (soft is None or soft > hard):
            raise BadRequest(
                f'ODC_JOB_LIMITS: "{part[:100]}" has a soft limit above the hard one',
                "Give the smaller one first.",
            )
        limits[found["name"]] = soft, hard
    return limits


def _amount(part: str, text: str) -> int | None:
    if text == "unlimited":
        return None
    found = _AMOUNT.match(text)
    amount = int(found[1]) * _UNITS[found[2]] if found else 2**63
    if amount >= 2**63:
        raise BadRequest(
            f'ODC_JOB_LIMITS: "{part[:100]}": "{text[:100]}" is not an amount',
            "Give a number, one with K, M, G or T, or unlimited.",
        )
    return amount


def _number(
    environment: Mapping[str, str], name: str, default: int, minimum: int, maximum: int
) -> int:
    text = environment.get(name)
    if not text:
        return default
    if not (
        text.isascii() and text.isdecimal() and len(text) < 12 and minimum <= int(text) <= maximum
    ):
        raise BadRequest(
            f'{name}="{text[:100]}" is not a whole number', f"Give {minimum} to {maximum}."
        )
    return int(text)
