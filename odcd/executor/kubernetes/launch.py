"""How a member's container starts: fixed text for its shell, and arguments for everything else."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from odcd.executor.output import expand
from odcd.records.dispatch import Dispatch, Member

JOB = "/odc/job"
RUN = "/odc/run"
MAX_PLAIN_BYTES = 900_000
MAX_PACKED_BYTES = 900_000
"""A ConfigMap is limited to 1 MiB."""

_BEGIN = """\
umask "$1"
script=/odc/job/script
if [ -f /odc/job/script.gz ]; then
  script=/odc/run/script
  gzip -dc /odc/job/script.gz >"$script" && chmod 500 "$script" || exit 126
fi
"""
PLAIN = (
    _BEGIN
    + """\
shift
printf '%s\\n' "$$" >/odc/run/pid
exec "$script" "$@"
"""
)
"""Arguments: umask, then the script's own."""

WITH_FILES = (
    _BEGIN
    + """\
append=$2 out=$3 err=$4 in=$5
shift 5
trap 'exit 143' TERM
mkfifo /odc/run/out /odc/run/err
tee $append -- "$out" </odc/run/out &
copies=$!
if [ -n "$err" ]; then
  tee $append -- "$err" </odc/run/err >&2 &
  copies="$copies $!"
fi
child= stopping=
trap 'if [ -n "$child" ]; then kill -TERM "$child"; else stopping=1; fi' TERM
if [ -n "$err" ]; then
  "$script" "$@" <"$in" >/odc/run/out 2>/odc/run/err &
else
  "$script" "$@" <"$in" >/odc/run/out 2>&1 &
fi
child=$!
printf '%s\\n' "$child" >/odc/run/pid
[ -z "$stopping" ] || kill -TERM "$child"
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2>/dev/null || break
done
left=1
while [ -n "$left" ]; do
  left=
  for fd in /proc/[0-9]*/fd/*; do
    [ "$fd" -ef /odc/run/out ] || [ "$fd" -ef /odc/run/err ] || continue
    pid=${fd#/proc/}
    pid=${pid%%/*}
    case " $$ $copies " in *" $pid "*) continue ;; esac
    kill -s KILL "$pid" 2>/dev/null && left=1
  done
done
wait $copies
exit "$code"
"""
)
"""Arguments: umask, -a or nothing, output, error (may be empty), input; then the script's own.
Output written to a file is also in the pod's log. The job ends with its script: processes that it
leaves behind are ended, as the container's end does. The ones that still hold the output open would
keep the copies, and so the container, running. The shell ends after the copies, with the job's exit
code."""

SIGNAL = """\
for look in 1 2 3 4 5 6 7 8 9 10; do
  [ ! -s /odc/run/pid ] || break
  sleep 0.2
done
read -r pid </odc/run/pid || exit 1
[ -z "$1" ] || exec kill -s "$0" "$pid"
kill -s "$0" -- "-$pid" 2>/dev/null || kill -s "$0" "$pid"
"""
"""Argument 0: the signal's name. 1: if not empty, signal only the script; otherwise the whole
process group if there is one. A job whose output goes to files has no group of its own."""


def literal(text: str) -> str:
    """Escape a text so that Kubernetes, which replaces $(NAME) in commands and environments, leaves
    it unchanged."""
    return text.replace("$", "$$")


def command(dispatch: Dispatch, member: Member) -> list[str]:
    own = [f"{dispatch.umask:04o}"]
    text = PLAIN
    if dispatch.stdout or dispatch.stderr or dispatch.stdin:
        text = WITH_FILES
        out = expand(dispatch.stdout, dispatch, member) if dispatch.stdout else "/dev/null"
        err = expand(dispatch.stderr, dispatch, member) if dispatch.stderr else ""
        read = expand(dispatch.stdin, dispatch, member) if dispatch.stdin else "/dev/null"
        append = dispatch.open_mode == "append" or member.rank > 0
        own += ["-a" if append else "", out, "" if err == out else err, read]
    arguments = ["/bin/sh", "-c", text, "odc", *own, *dispatch.args]
    return [literal(argument) for argument in arguments]


def signal_command(name: str, *, batch_only: bool) -> Sequence[str]:
    return ["/bin/sh", "-c", SIGNAL, name, "batch" if batch_only else ""]


def script_data(script: str) -> dict[str, Any] | None:
    """The data of a script's ConfigMap; None: it is too long even when compressed."""
    content = script.encode()
    if len(content) <= MAX_PLAIN_BYTES:
        return {"data": {"script": script}}
    packed = gzip.compress(content, mtime=0)
    if len(packed) > MAX_PACKED_BYTES:
        return None
    return {"binaryData": {"script.gz": b64encode(packed).decode()}}
