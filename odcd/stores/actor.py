"""The user who makes a request, in the form that SQL functions take."""

from __future__ import annotations

import json

from odcd.records.job import Identity


def actor_of(who: Identity, **more: object) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator, **more})
