"""How a member's container starts: fixed text for its shell, and arguments for everything else."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from odcd.executor.kubernetes.steps.files import TEXTS
from odcd.executor.output import expand
from odcd.records.dispatch import Dispatch, Member

JOB = "/odc/job"
RUN = "/odc/run"
MAX_PLAIN_BYTES = 900_000
MAX_PACKED_BYTES = 900_000
"""A ConfigMap is limited to 1 MiB."""

_INLINE = """\
script=/odc/run/script
printf '%s' "$1" >"$script" && chmod 500 "$script" || exit 126
shift
umask "$1"
"""
"""Argument: the script; then as if it were in a ConfigMap."""
_COMMANDS = """\
bin=/odc/run/bin
if mkdir -p "$bin" /odc/run/calls && printf '%s' "$1" >"$bin/odc-slurm" &&
  chmod 755 "$bin/odc-slurm"; then
  for name in $2; do ln -s odc-slurm "$bin/$name"; done
  PATH=$bin:$PATH
  export PATH
fi
shift 2
"""
"""Arguments: the program of Slurm's commands, and their names; then those of the rest."""
_BEGIN = """\
umask "$1"
script=/odc/job/script
if [ -f /odc/job/script.gz ]; then
  script=/odc/run/script
  gzip -dc /odc/job/script.gz >"$script" && chmod 500 "$script" || exit 126
fi
"""
_PLAIN = """\
shift
printf '%s\\n' "$$" >/odc/run/pid
exec "$script" "$@"
"""
"""Arguments: umask, then the script's own."""

_WITH_FILES = """\
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
send() {
  [ -n "$1" ] || ! kill -s "$0" -- "-$pid" 2>/dev/null || return 0
  kill -s "$0" "$pid" || [ ! -e "/proc/$pid" ]
}
[ -n "$2" ] || { send "$1"; exit; }
begin_of() {
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
  set -- ${stat##*) }
  printf '%s\\n' "${20}"
}
sender=/odc/run/limit-signal
printf '%s\\n' "$$ $(begin_of $$)" >"$sender.$$" && ln "$sender.$$" "$sender" 2>/dev/null || {
  for look in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ ! -e "$sender.done" ] || exit 0
    { read -r other begin <"$sender"; } 2>/dev/null || break
    [ "$(begin_of "$other")" = "$begin" ] || break
    sleep 0.2
  done
  [ ! -e "$sender.done" ] || exit 0
  [ "$look" -lt 20 ] || { printf 'an earlier command is still sending it\\n' >&2; exit 1; }
}
send "$1" || exit
{ true >"$sender.done"; } 2>/dev/null
exit 0
"""
"""Argument 0: the signal's name. 1: if not empty, signal only the script; otherwise the whole
process group if there is one. A job whose output goes to files has no group of its own. A script
that has just ended needs no signal, and is no failure. 2: if not empty, this is the signal before
the time limit: it is sent once, also if this command runs again because the answer was lost. Only
if an earlier command was killed before it could note that it has sent the signal, it is sent again.
"""


HOLD = """\
live_tasks() {
  live=
  for file in /odc/run/step-*/pid.*; do
    [ -e "$file" ] && [ ! -e "${file%/*}/exit.${file##*.}" ] || continue
    read -r pid <"$file" && live="$live $pid"
  done
  [ -n "$live" ]
}
stop() {
  trap '' TERM
  if live_tasks; then
    for pid in $live; do kill -s TERM -- "-$pid" || kill -s TERM "$pid"; done 2>/dev/null
  fi
  while live_tasks; do sleep 0.2 || sleep 1; done 2>/dev/null
  exit 0
}
printf '%s\\n' "$$" >/odc/run/pid
trap stop TERM
trap '' HUP INT QUIT USR1 USR2 ALRM
while :; do sleep 86400 & wait "$!"; done
"""
"""For a member that only keeps its node: the script runs on the first node. Signals for the job's
processes do not end it. It passes TERM on to the tasks of steps, and waits for them."""


COMMANDS = (
    "srun", "sbatch", "squeue", "scancel", "scontrol", "sacct", "sinfo", "sacctmgr", "sshare",
    "sprio", "sdiag", "seff", "sbcast",
)  # fmt: skip
"""Slurm's commands in pods. The others do something on the machine where they are called."""
_CALL = re.compile(r"\b(?:" + "|".join(COMMANDS) + r"|submitit)\b")


def may_call(dispatch: Dispatch, script: str) -> bool:
    """Whether a job gets Slurm's commands: if its script names one, or runs on the first of several
    nodes, where it has no other way to use them. odcd holds a connection to each such job."""
    return not dispatch.is_dev_server and (
        (len(dispatch.members) > 1 and dispatch.holds(1)) or _CALL.search(script) is not None
    )


def literal(text: str) -> str:
    """Escape a text so that Kubernetes, which replaces $(NAME) in commands and environments, leaves
    it unchanged."""
    return text.replace("$", "$$")


def command(
    dispatch: Dispatch, member: Member, script: str | None = None, *, calls: bool = False
) -> list[str]:
    """script: if it is not in a ConfigMap. calls: the script may call Slurm's commands."""
    if dispatch.holds(member.rank):
        return [literal(part) for part in ("/bin/sh", "-c", HOLD, "odc")]
    own = [f"{dispatch.umask:04o}"]
    text = _PLAIN
    if dispatch.stdout or dispatch.stderr or dispatch.stdin:
        text = _WITH_FILES
        out = expand(dispatch.stdout, dispatch, member) if dispatch.stdout else "/dev/null"
        err = expand(dispatch.stderr, dispatch, member) if dispatch.stderr else ""
        read = expand(dispatch.stdin, dispatch, member) if dispatch.stdin else "/dev/null"
        append = dispatch.open_mode == "append" or member.rank > 0
        own += ["-a" if append else "", out, "" if err == out else err, read]
    if script is None:
        text = _BEGIN + text
    else:
        text, own = _INLINE + text, [script, *own]
    if calls:
        text, own = _COMMANDS + text, [TEXTS["client"], " ".join(COMMANDS), *own]
    arguments = ["/bin/sh", "-c", text, "odc", *own, *dispatch.args]
    return [literal(argument) for argument in arguments]


def signal_command(name: str, *, batch_only: bool, once: bool = False) -> Sequence[str]:
    """once: see SIGNAL."""
    return ["/bin/sh", "-c", SIGNAL, name, "batch" if batch_only else "", "once" if once else ""]


def script_data(script: str) -> dict[str, Any] | None:
    """The data of a script's ConfigMap; None: it is too long even when compressed."""
    content = script.encode()
    if len(content) <= MAX_PLAIN_BYTES:
        return {"data": {"script": script}}
    packed = gzip.compress(content, mtime=0)
    if len(packed) > MAX_PACKED_BYTES:
        return None
    return {"binaryData": {"script.gz": b64encode(packed).decode()}}
