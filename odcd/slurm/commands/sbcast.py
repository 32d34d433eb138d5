"""sbcast's options, and the step that writes the file in each pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from odcd.slurm.commands.getopt import SEPARATOR, Flag, parse
from odcd.slurm.commands.srun_options import unused
from odcd.slurm.usage import Usage, fail

FAILED = 255
"""The exit code for a source that cannot be read and for a job that is not known. If a node cannot
write the file, the exit code is the number of its error, as in Slurm."""
_TRY = 'Try "sbcast --help" for more information\n'
OPTIONS: tuple[Flag, ...] = (
    Flag("force", "force", "f", "none", "replace an existing file"),
    Flag("preserve", "preserve", "p", "none", "keep the times of the file"),
    Flag("job", "jobid", "j", "required", "the job to copy to"),
    *(unused(long, short, argument) for long, short, argument in (
        ("compress", "C", "optional"), ("fanout", "F", "required"), ("size", "s", "required"),
        ("timeout", "t", "required"), ("verbose", "v", "none"), ("treewidth", "", "required"),
        ("exclude", "", "required"),
    )),
    Flag("libs", "send-libs", "", "optional", "only no"),
    Flag("nodes", "nodelist", "w", "required", refused="the file goes to all nodes of the job"),
    Flag("no_job", "no-allocation", "Z", "none", refused="odc copies files to the nodes of a job"),
    Flag("help", "help", "", "none"), Flag("usage", "usage", "", "none"),
    Flag("version", "version", "V", "none"),
)  # fmt: skip
WRITE = """\
fail() {
  [ -z "$fresh" ] || rm -f -- "$fresh"
  printf 'sbcast: error: REQUEST_FILE_BCAST(%s): %s\\n' "$SLURMD_NODENAME" "$2" >&2
  exit "$1"
}
target=$1 force=$2 preserve=$3 fresh=
case $target in */*) folder=${target%/*}/ ;; *) folder=./ ;; esac
trap 'rm -f -- "$fresh"; exit 143' TERM
IFS=' ' read -r mode modified || exit 1
[ ! -d "$target" ] || fail 21 'Is a directory'
[ -d "$folder" ] || { [ ! -e "${folder%/}" ] || fail 20 'Not a directory'; }
[ -d "$folder" ] || fail 2 'No such file or directory'
[ -n "$force" ] || { [ ! -e "$target" ] && [ ! -L "$target" ]; } || fail 17 'File exists'
[ -w "$folder" ] || fail 13 'Permission denied'
umask 077
fresh=$folder.sbcast-$SLURM_JOB_ID.$SLURM_STEP_ID
cat >"$fresh" || fail 5 'Input/output error'
chmod "$mode" "$fresh" || fail 1 'Operation not permitted'
[ -z "$preserve" ] || touch -d "@$modified" "$fresh"
mv -f -- "$fresh" "$target" || fail 5 'Input/output error'
"""
"""Each pod runs it as a task, with the file as its input: first a line with the mode and the time
of the last change, then the content. A file that is not complete has another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCall:
    source: str
    target: str
    force: bool
    preserve: bool
    job: str | None


def parse_sbcast(argv: Sequence[str], environment: Mapping[str, str]) -> CopyCall:
    """Raises Usage."""
    found = parse("sbcast", OPTIONS, argv)
    if found.has("help") or found.has("usage"):
        raise Usage(out="Usage: sbcast [-CfFjpvV] SOURCE DEST\n", code=0)
    if found.has("version"):
        raise Usage(out="slurm 24.11.4\n", code=0)
    if found.has("libs") and (found.last("libs") or "yes").lower() != "no":
        raise fail("sbcast", "--send-libs is not supported: copy the libraries one by one")
    if len(found.operands) != 2:
        raise Usage(f"Need two file names, have {len(found.operands)} names\n{_TRY}")
    source, target = found.operands
    if target.endswith("/"):
        raise fail("sbcast", "Target filename cannot be a directory.")
    job = (found.last("job") or environment.get("SLURM_JOB_ID") or "").partition(".")[0]
    return CopyCall(
        source=source, target=target,
        force=found.has("force") or "SBCAST_FORCE" in environment,
        preserve=found.has("preserve") or "SBCAST_PRESERVE" in environment,
        # The nodes of all components are those of one job.
        job=job.partition("+")[0] or None,
    )  # fmt: skip


def step_of(call: CopyCall, job_id: int, nodes: Sequence[int]) -> list[str]:
    """The words of srun for a task on each node. nodes: how many there are in each component."""
    words: list[str] = []
    for group, count in enumerate(nodes):
        words += [SEPARATOR] if words else []
        words += [f"--jobid={job_id}", *([f"--het-group={group}"] if len(nodes) > 1 else []),
                  f"--nodes={count}", f"--ntasks={count}", "--overlap", "--job-name=sbcast",
                  "sh", "-c", WRITE, "sbcast", call.target, "x" * call.force,
                  "x" * call.preserve]  # fmt: skip
    return words
