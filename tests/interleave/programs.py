"""Statements of users, operators and the leader, as steps of programs; labels stand for jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from odcd.jobs.submission import prepare
from odcd.records.job import Identity
from odcd.slurm.lists import parse_array
from tests.interleave.stage import PLANNER, Program, Session, Step
from tests.support.builders.jobs import ALICE, NODES, ROOT, a_job, dependency_json

OPERATOR = json.dumps({"user": "root", "uid": 0, "operator": True})
RECORD = "select * from odc.record_facts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"


def program(name: str, *transactions: Step | Sequence[Step]) -> Program:
    """A transaction is a list of steps, or one step that is committed by itself."""
    return Program(name, [[t] if callable(t) else list(t) for t in transactions])


def leader(name: str, *transactions: Step | Sequence[Step]) -> Program:
    made = program(name, *transactions)
    return Program(made.name, made.transactions, leads=True)


def passes(count: int = 1) -> Program:
    """The leader's own connection, with this many passes one after the other."""
    return Program("pass", [[plan]] * count, leads=True, isolation=PLANNER)


def reader() -> Program:
    """A session that keeps a snapshot open, as a backup does."""
    return Program("reader", [[look]], isolation="repeatable read")


# -- users ---------------------------------------------------------------------------------------


def submit(label: str, who: Identity = ALICE, **fields: Any) -> Step:
    """dependency: with labels in braces; a job that names one not committed yet is not sent."""

    async def submits(session: Session) -> None:
        request = dict(fields)
        if "dependency" in request:
            text = session.world.text(request["dependency"])
            if text is None:
                return
            request["dependency"] = text
        made = prepare(
            who, [a_job(name=request.pop("name", label), **request)], key=None, dry_run=False
        )
        [row] = await session.fetch(
            "select * from odc.submit_jobs($1::jsonb, $2, $3, $4)",
            json.dumps([made.request]), list(made.texts), list(made.texts.values()),
            session.world.now,
        )  # fmt: skip
        if row["job_id"] is not None:
            tasks = parse_array(request["array"]).count if request.get("array") else 1
            session.on_commit.append(lambda: session.world.add(label, row["job_id"], tasks))
        else:
            session.refusals.append(f"{row['code']} {row['message']}")

    description = ", ".join(f"{name}={value}" for name, value in fields.items())
    submits.__name__ = f"submit({label}: {description})"
    return submits


def change(verb: str, label: str, more: str = "", *arguments: Any, who: Identity = ROOT) -> Step:
    async def changes(session: Session) -> None:
        job = session.world.jobs.get(label)
        if job is None:
            return
        actor = {"user": who.user, "uid": who.uid, "operator": who.operator}
        await session.fetch(
            f"select odc.{verb}_jobs($1::jsonb, $2::jsonb, $3{more})", json.dumps(actor),
            json.dumps({"ids": [{"job_id": job, "tasks": None}]}), session.world.now, *arguments,
        )  # fmt: skip

    changes.__name__ = f"{verb}({label}{', ' if arguments else ''}{', '.join(map(str, arguments))})"
    return changes


def cancel(label: str, signal: int | None = None) -> Step:
    return change("cancel", label, ", $4", signal)


def hold(label: str) -> Step:
    return change("hold", label)


def release(label: str) -> Step:
    return change("release", label)


def requeue(label: str, *, held: bool = False) -> Step:
    return change("requeue", label, ", $4", held)


def update(label: str, *, who: Identity = ROOT, **changes: Any) -> Step:
    if isinstance(changes.get("dependency"), str):
        text = changes["dependency"]

        async def depends(session: Session) -> None:
            known = session.world.text(text)
            if known is not None:
                new = json.dumps({"dependency": dependency_json(known)})
                await change("update", label, ", $4::jsonb", new, who=who)(session)

        depends.__name__ = f"update({label}, {text})"
        return depends
    return change("update", label, ", $4::jsonb", json.dumps(changes), who=who)


# -- operators -----------------------------------------------------------------------------------


def calls(name: str, text: str, *arguments: Any) -> Step:
    """One statement; the last argument is the world's time."""

    async def asks(session: Session) -> None:
        await session.fetch(text, *arguments, session.world.now)

    asks.__name__ = name
    return asks


def book(name: str, *nodes: str, begins_s: float = 3600, lasts_s: int = 3600, **ask: Any) -> Step:
    async def books(session: Session) -> None:
        request = {
            "name": name, "kind": "maintenance", "node_list": list(nodes),
            "starts_at": session.world.at(begins_s).isoformat(), "duration_s": lasts_s, **ask,
        }  # fmt: skip
        await session.fetch(
            "select odc.create_booking($1::jsonb, $2::jsonb, null, '', $3)",
            OPERATOR, json.dumps(request), session.world.now,
        )  # fmt: skip

    books.__name__ = f"book({name})"
    return books


def unbook(name: str) -> Step:
    return calls("unbook", "select odc.delete_booking($1::jsonb, $2, $3)", OPERATOR, name)


def node_state(state: str, *nodes: str) -> Step:
    return calls(
        f"node_state({state})", "select odc.set_node_state($1::jsonb, $2, $3, $4, $5)",
        OPERATOR, list(nodes), state, None if state == "UP" else "test",
    )  # fmt: skip


def edit_partition(**changes: Any) -> Step:
    return calls(
        f"edit_partition({changes})", "select odc.edit_partition($1::jsonb, 'main', $2::jsonb, $3)",
        OPERATOR, json.dumps(changes),
    )  # fmt: skip


def edit_qos(name: str = "normal", **ask: Any) -> Step:
    return calls(
        f"edit_qos({ask})", "select odc.edit_qos($1::jsonb, $2, $3::jsonb, $4)",
        OPERATOR, name, json.dumps(ask),
    )  # fmt: skip


def edit_account(**ask: Any) -> Step:
    return calls(
        f"edit_account({ask})", "select odc.edit_account($1::jsonb, 'default', $2::jsonb, $3)",
        OPERATOR, json.dumps(ask),
    )  # fmt: skip


def set_licence(name: str, total: int) -> Step:
    return calls(
        f"licence({name}={total})", "select odc.set_licence($1::jsonb, $2, $3, $4)",
        OPERATOR, name, total,
    )  # fmt: skip


# -- the leader ----------------------------------------------------------------------------------


async def plan(session: Session) -> None:
    """One pass, under the term that this session read when it began."""
    started = await session.fetch(
        "select started from odc.plan_pass($1, $2)", session.term, session.world.now
    )
    session.started = started[0][0]


async def sweep(session: Session) -> None:
    await session.fetch("select odc.sweep($1, $2)", session.term, session.world.now)


async def turn(session: Session) -> None:
    """Take the turn, so that a concurrent pass decides and then waits."""
    await session.fetch("select pg_advisory_xact_lock(7300196)")


async def look(session: Session) -> None:
    await session.fetch("select count(*) from odc.pending")


def settle(kind: str = "exited", label: str | None = None, exit_code: int = 0) -> Step:
    """An executor's facts about the running members: all of them, or those of one job."""

    async def settles(session: Session) -> None:
        members = await session.fetch(
            "select r.job_id, r.attempt, a.rank from odc.running as r "
            "join odc.allocation as a using (job_id) "
            "where $1::bigint is null or $1 in (r.job_id, r.array_job_id) order by 1, 3",
            None if label is None else session.world.jobs.get(label, 0),
        )
        n, now = len(members), session.world.now
        await session.fetch(
            RECORD, session.term, [m["job_id"] for m in members], [m["attempt"] for m in members],
            [m["rank"] for m in members], [kind] * n, [now] * n,
            [exit_code if kind == "exited" else None] * n, [None] * n, [None] * n, [None] * n, now,
        )  # fmt: skip

    settles.__name__ = f"{kind}({label or 'all'})"
    return settles


def nodes(**foreign_gpus: int) -> str:
    """An inventory of h100-1, h100-2 and l4-1; what others use, by h100_1, h100_2, l4_1."""
    return json.dumps([
        {"name": name, "gpu_type": kind, "gpus": NODES[kind][0], "cpus": NODES[kind][1],
         "mem_mib": NODES[kind][2], "declared": True,
         "foreign_gpus": foreign_gpus.get(name.replace("-", "_"), 0)}
        for name, kind in (("h100-1", "h100"), ("h100-2", "h100"), ("l4-1", "l4"))
    ])  # fmt: skip


def inventory(**foreign_gpus: int) -> Step:
    async def registers(session: Session) -> None:
        await session.fetch(
            "select odc.register_nodes($1, $2::jsonb, true, $3)",
            session.term, nodes(**foreign_gpus), session.world.now,
        )  # fmt: skip

    registers.__name__ = f"inventory({foreign_gpus})"
    return registers


def later(seconds: float) -> Step:
    """Time passes, and a sweep does what is due by time alone."""

    async def sweeps(session: Session) -> None:
        session.world.now += timedelta(seconds=seconds)
        await sweep(session)

    sweeps.__name__ = f"later({seconds})"
    return sweeps


async def take_term(session: Session) -> None:
    """Raise the term, as a daemon does after the leader was silent for the lease, unless another
    daemon was faster."""
    [row] = await session.fetch("select term, beat from odc.term")
    [taken] = await session.fetch(
        "select odc.take_term($1, $2, 'other', 'host', $3)",
        row["term"], row["beat"], session.world.now,
    )  # fmt: skip
    session.changed_nothing = taken[0] is None
    session.term = session.term if session.changed_nothing else taken[0]
