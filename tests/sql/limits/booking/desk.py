"""Bookings as operators manage them, for tests."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from odcd.records.job import Identity
from tests.support.builders.jobs import ROOT, Queue

HOUR = 3600
DAY = 86400


class Desk:
    """Bookings on the cluster of a queue, at the time of the queue."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.sql = queue.sql

    @property
    def now(self) -> datetime:
        return self.queue.now

    def create(self, name: str = "b", who: Identity = ROOT, **ask: Any) -> dict[str, Any]:
        """By default, alice's booking of an hour that begins in two hours."""
        return self.request({"name": name, **ask}, who=who)

    def request(
        self, ask: dict[str, Any], *, who: Identity = ROOT, key: str | None = None, digest: str = ""
    ) -> dict[str, Any]:
        ask = {"starts_at": self.at(2 * HOUR), "users": ["alice"], **ask}
        if "ends_at" not in ask:
            ask.setdefault("duration_s", HOUR)
        if ask.get("kind") == "maintenance" and ask["users"] == ["alice"]:
            del ask["users"]
        return json.loads(
            self.sql.value(
                "select odc.create_booking($1::jsonb, $2::jsonb, $3, $4, $5)",
                actor(who), body(ask), key, digest, self.now,
            )
        )  # fmt: skip

    def edit(self, name: str = "b", /, who: Identity = ROOT, **ask: Any) -> dict[str, Any]:
        return json.loads(
            self.sql.value(
                "select odc.edit_booking($1::jsonb, $2, $3::jsonb, $4)",
                actor(who), name, body(ask), self.now,
            )
        )  # fmt: skip

    def delete(self, name: str = "b", who: Identity = ROOT) -> dict[str, Any]:
        return json.loads(
            self.sql.value(
                "select odc.delete_booking($1::jsonb, $2, $3)", actor(who), name, self.now
            )
        )

    def list(self, who: Identity = ROOT, *, ended: bool = False) -> list[str]:
        found = json.loads(
            self.sql.value(
                "select odc.list_bookings($1::jsonb, $2, $3)", actor(who), ended, self.now
            )
        )
        return [booking["name"] for booking in found]

    def show(self, name: str = "b", who: Identity = ROOT) -> dict[str, Any]:
        return json.loads(
            self.sql.value("select odc.show_booking($1::jsonb, $2, $3)", actor(who), name, self.now)
        )

    def at(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def windows(self) -> list[tuple[int, datetime, datetime, int]]:
        return [
            (row["node_id"], row["starts_at"], row["ends_at"], row["booking_id"])
            for row in self.sql.rows("select * from odc._plan_bookings($1)", self.now)
        ]

    def node(self, name: str, state: str) -> None:
        self.sql.value(
            "select odc.set_node_state($1::jsonb, $2, $3, 'test', $4)",
            actor(ROOT), [name], state, self.now,
        )  # fmt: skip

    def events(self) -> list[tuple[str, str]]:
        return [
            (row["kind"], row["actor"])
            for row in self.sql.rows(
                "select kind, actor from odc.event where kind like 'booking%' order by id"
            )
        ]

    def why(self, job_id: int) -> list[dict[str, Any]]:
        """As operators see it."""
        return self.sql.rows(
            """select * from odc._why_bookings($1, $2, '{"operator": true}')""", job_id, self.now
        )


def actor(who: Identity) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})


def body(ask: dict[str, Any]) -> str:
    uids = {"alice": 1001, "bob": 1002}
    plain = {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in ask.items()
    }
    if "users" in plain:
        plain["users"] = [{"name": name, "uid": uids.get(name)} for name in plain["users"]]
    return json.dumps(plain)
