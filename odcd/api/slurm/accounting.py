"""sacctmgr's lists, sshare, sprio, sdiag and seff."""

from __future__ import annotations

import json
from typing import Any

from odcd.api.slurm.fetch import fetch_jobs, selectors
from odcd.api.slurm.remote import Finished, Remote
from odcd.api.slurm.version import answer_about
from odcd.slurm.columns import values as v
from odcd.slurm.columns.values import FIELDS, JobRow
from odcd.slurm.commands import accounting as words
from odcd.slurm.commands import sprio as command
from odcd.slurm.commands.getopt import parse
from odcd.slurm.usage import Usage, fail

CLUSTER = "odc"
MOST = 10_000


async def sacctmgr(remote: Remote) -> Finished:
    about = answer_about(remote, words.SACCTMGR)
    if about is not None:
        return about
    wanted = words.parse_sacctmgr(remote.request.argv)
    rows = await _entities(remote, wanted.entity, associations=wanted.given.has("associations"))
    names = {"user": "user", "account": "account", "association": "user", "qos": "name",
             "cluster": "cluster"}  # fmt: skip
    for key, values in wanted.where.items():
        column = names[wanted.entity] if key in ("name", "names") else key
        rows = [row for row in rows if str(row.get(column)) in values]
    return Finished(out=words.render(wanted.format, rows, wanted.given))


async def _entities(remote: Remote, entity: str, *, associations: bool) -> list[dict[str, Any]]:
    store = remote.api.store
    if entity == "cluster":
        return [
            {
                "cluster": CLUSTER,
                "host": remote.request.host or "",
                "port": 0,
                "rpc": 0,
                "shares": 1,
            }
        ]
    if entity == "qos":
        return listed(await store.qos.list(), "qos")
    if entity == "account":
        found = listed(await store.accounts.list(), "accounts")
        return [{**row, "account": row["name"]} for row in found]
    rows: list[dict[str, Any]] = []
    for user in listed(await store.users.list(), "users"):
        one = {**user, "admin": "None", "cluster": CLUSTER}
        if entity == "user" and not associations:
            rows.append(one)
        else:
            rows += [{**one, **member} for member in user["accounts"]]
    return rows


async def sshare(remote: Remote) -> Finished:
    about = answer_about(remote, words.SSHARE)
    if about is not None:
        return about
    cells, given = words.parse_sshare(remote.request.argv)
    answer = json.loads(await remote.api.store.accounting.list_shares(remote.api.clock.now()))
    users = given.last("users")
    wanted = users.split(",") if users else None if given.has("all") else [remote.who.user]
    rows: list[dict[str, Any]] = []
    for share in answer["shares"]:
        if share["user"] is None and given.has("own"):
            continue
        if share["user"] is not None and wanted is not None and share["user"] not in wanted:
            continue
        if (accounts := given.last("accounts")) and share["account"] not in accounts.split(","):
            continue
        rows.append({**share, "cluster": CLUSTER})
    return Finished(out=words.render(cells, rows, given))


async def sprio(remote: Remote) -> Finished:
    about = answer_about(remote, command.OPTIONS)
    if about is not None:
        return about
    given = parse("sprio", command.OPTIONS, remote.request.argv)
    if given.has("helpformat"):
        return Finished(out=command.help_of_format())
    words = given.operands
    # The list of -j may be a word of its own.
    jobs = given.last("jobs") or (words[0] if given.has("jobs") and words else None)
    if words and (given.last("jobs") or not given.has("jobs") or len(words) > 1):
        raise fail("sprio", f"Unrecognized option: {words[-1][:60]}")
    ids = None
    if (text := jobs) is not None:
        ids = [one.job_id for one in await selectors(remote, "sprio", text.split(","))]

    def names(key: str) -> list[str] | None:
        found = given.last(key)
        return found.split(",") if found else None

    answer = json.loads(
        await remote.api.store.accounting.list_priorities(
            ids, names("users"), None, names("partitions"), MOST, remote.api.clock.now()
        )
    )
    environment = remote.request.environment
    cells, complaints = command.format_of(given, environment, answer["weights"])
    if ids is not None and not answer["jobs"]:
        return Finished(out="Unable to find jobs matching user/id(s) specified\n", err=complaints)
    shown = command.render(cells, answer["jobs"], answer["weights"], given)
    return Finished(out=shown, err=complaints)


async def sdiag(remote: Remote) -> Finished:
    if remote.request.argv and remote.request.argv[0] not in (
        "-a",
        "--all",
        "-T",
        "--sort-by-time",
    ):
        raise fail("sdiag", f"{remote.request.argv[0][:60]} is not supported: use odcctl diag")
    now = remote.now()
    report = json.loads(await remote.api.store.cluster.diagnose(remote.api.clock.now()))
    jobs, last = report["jobs"], report.get("last_pass") or {}
    running = sum(jobs.get(state, 0) for state in ("CONFIGURING", "RUNNING", "COMPLETING"))
    line = "*" * 55
    lines = [
        line, f"sdiag output at {now:%a %b %d %H:%M:%S %Y} ({now.timestamp():.0f})", line,
        f"Jobs pending:   {report['pending_tasks']}", f"Jobs running:   {running}",
        f"Jobs states ts:  {now:%a %b %d %H:%M:%S %Y} ({now.timestamp():.0f})", "",
        "Main schedule statistics (microseconds):",
        f"\tLast cycle:   {round(float(last.get('took_ms', 0)) * 1000)}",
        f"\tLast queue length: {report['pending_tasks']}",
        f"\tLast depth: {last.get('looked', 0)}",
    ]  # fmt: skip
    return Finished(out="\n".join(lines) + "\n")


async def seff(remote: Remote) -> Finished:
    argv = remote.request.argv
    if len(argv) != 1 or argv[0].startswith("-"):
        raise Usage(out="Usage: seff JOBID\n", code=0 if argv[:1] in (["-h"], ["--help"]) else 1)
    ids = await selectors(remote, "seff", argv)
    rows = await fetch_jobs(remote, {"ids": ids}, FIELDS, ended=True)
    if not rows:
        raise Usage(f"Job not found: {argv[0]}\n", code=2)
    uses = json.loads(
        (await remote.api.store.jobs.list(
            {"ids": ids}, remote.api.clock.now(), ended=True, after=None, limit=len(rows),
            fields=["id", "gpu_use"],
        ))[0]
    )  # fmt: skip
    use = {one["id"]: one["gpu_use"] for one in uses}
    texts = (_efficiency(row, use.get(row.id)).removesuffix("\n") for row in rows)
    return Finished(out=(await remote.lines(f"{text}\n" for text in texts))[:-1])


def _efficiency(row: JobRow, use: dict[str, Any] | None) -> str:
    """use: of its GPUs. The memory used is that of the largest process."""
    seconds, cores = v.elapsed_s(row), v.cpus(row)
    memory_gib = row.mem_per_node_mib * row.node_count / 1024
    lines = [
        f"Job ID: {row.id}", f"Cluster: {CLUSTER}", f"User/Group: {row.user}/{row.user}",
        f"State: {v.state_word(row)} (exit code {row.exit_code or 0})",
    ]  # fmt: skip
    if row.array_task_id is not None:
        lines.insert(1, f"Array Job ID: {v.job_id(row)}")
    if row.node_count > 1:
        lines += [f"Nodes: {row.node_count}", f"Cores per node: {max(1, row.cpus_per_node)}"]
    else:
        lines.append(f"Cores: {cores}")
    used = row.resource_use
    cpu = "not measured" if used is None else v.long_clock(round(used.cpu_s))
    resident_gib = used.max_rss_kib / 1024**2 if used else None
    resident = "not measured" if resident_gib is None else f"{resident_gib:.2f} GB"
    lines += [
        f"CPU Utilized: {cpu}",
        f"CPU Efficiency: {_share(used and used.cpu_s, seconds * cores)} of "
        f"{v.long_clock(seconds * cores)} core-walltime",
        f"Job Wall-clock time: {v.long_clock(seconds)}",
        f"Memory Utilized: {resident}",
        f"Memory Efficiency: {_share(resident_gib, memory_gib)} of {memory_gib:.2f} GB",
    ]
    if row.gpus:
        busy = None if use is None or use["busy_ratio"] is None else 100 * use["busy_ratio"]
        shown = "not measured" if busy is None else f"{busy:.2f}%"
        lines += [f"GPUs: {row.gpus}", f"GPU Efficiency: {shown}"]
    return "\n".join(lines) + "\n"


def _share(part: float | None, whole: float) -> str:
    if part is None:
        return "not measured,"
    return f"{100 * part / whole if whole else 0:.2f}%"


def listed(text: str, key: str) -> list[dict[str, Any]]:
    """The rows of an answer, which is an array or an object with one."""
    found = json.loads(text)
    return found[key] if isinstance(found, dict) else found
