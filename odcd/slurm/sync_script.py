"""The script of `odcctl run --sync`: the command runs in a copy of the user's folder.

Steps of the client, odcctl.sync.programs, bring the files and fetch the results. All of it runs as
the job's user, in the job. In the folder FOLDER/odc-sync-TOKEN-ATTEMPT-RANK are:

    data       the copy
    receiving  exists while files arrive
    ready      exists when all have arrived
    code       the command's exit code
    fetched    exists when the client has the results
"""

from __future__ import annotations

import shlex
from typing import Annotated

import msgspec

from odcd.errors import BadRequest
from odcd.records.fields import PRINTABLE
from odcd.slurm.option_values import Settings

_SCRIPT = """\
#!/bin/sh
# odcctl run --sync: waits for the files, runs the command in them, and waits for the results.
all={prefix}
one=$all-$ODC_ATTEMPT-$ODC_RANK
fail() {{
  printf 'odc: %s\\n' "$1" >&2
  exit 1
}}
nap() {{
  sleep 0.2 2>/dev/null || sleep 1
}}
waits() {{ # until a file exists, at most so many seconds
  began=$(date +%s)
  until [ -e "$one/$1" ]; do
    limit=$2
    [ "$1" = fetched ] || [ ! -e "$one/receiving" ] || limit={longest_s}
    [ $(($(date +%s) - began)) -lt "$limit" ] || return 1
    nap
  done
}}
rm -rf -- "$all"-*-"$ODC_RANK"
mkdir -m 700 -- "$one" || fail "the folder for the files cannot be created"
trap 'rm -rf -- "$one"; exit 143' TERM
waits ready {patience_s} || {{
  rm -rf -- "$one"
  fail "the files did not arrive, so the command was not started"
}}
newer=-cnewer
find "$one" -prune -cnewer "$one/ready" >/dev/null 2>&1 || newer=-newer
until : >"$one/began" && [ -n "$(find "$one/began" -prune $newer "$one/ready")" ]; do
  nap
done
cd "$one/data" || fail "the folder of the files is gone"
# Signals are for the command. Its results are fetched even if one ends it.
trap : TERM INT HUP USR1 USR2
"$@"
code=$?
cd /
if [ "$ODC_RANK" != 0 ]; then
  rm -rf -- "$one"
  exit "$code"
fi
echo "$code" >"$one/code"
if waits fetched {keep_s}; then
  rm -rf -- "$one"
else
  printf 'odc: the results were not fetched; they are in %s on %s\\n' "$one/data" \\
    "$SLURMD_NODENAME" >&2
fi
exit "$code"
"""
PATIENCE_S = 600
"""How long a job waits for the files while none arrive. Its GPUs are idle then."""
LONGEST_S = 7200
"""How long it waits while files arrive."""
KEEP_S = 1800
"""How long a job waits until its results are fetched."""


class Sync(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run in a copy of the user's folder. folder: where each node makes its copy. token: part of
    the name of the copy. size_bytes: of the files."""

    token: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    folder: Annotated[str, msgspec.Meta(min_length=1, max_length=1024, pattern=PRINTABLE)] = "/tmp"
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 50)] = 0


def sync_script(sync: Sync) -> str:
    prefix = f"{sync.folder.rstrip('/')}/odc-sync-{sync.token}"
    return _SCRIPT.format(
        prefix=shlex.quote(prefix), patience_s=PATIENCE_S, longest_s=LONGEST_S, keep_s=KEEP_S
    )


def check_sync(sync: Sync, settings: Settings) -> None:
    """Raises BadRequest."""
    if not sync.folder.startswith("/"):
        raise BadRequest(
            f'the folder for the copy "{sync.folder[:60]}" is not absolute',
            "Set ODC_SYNC_FOLDER to a path that starts with /.",
        )
    if settings.chdir is not None:
        raise BadRequest(
            "--chdir and --sync cannot be used together", "The command runs in the copy."
        )
    if settings.launch == "first" and settings.nodes is not None and settings.nodes.minimum > 1:
        raise BadRequest(
            "--launch=first and --sync cannot be used together",
            "With --sync the command runs on each node, in a copy of its own.",
        )
    if settings.signal is not None and settings.signal.batch:
        raise BadRequest(
            "--signal=B: and --sync cannot be used together",
            "Leave B: out: the signal then reaches the command.",
        )
    for name in ("stdin", "stdout", "stderr"):
        path = getattr(settings, name)
        if path and not path.startswith("/"):
            option = {"stdin": "input", "stdout": "output", "stderr": "error"}[name]
            raise BadRequest(
                f'--{option}: with --sync, the path "{path[:60]}" must be absolute',
                "The job opens it before the copy exists. Or leave it out, and redirect odcctl's "
                "own output.",
            )
