"""The base of all answers: the schemas of /openapi.json.

PostgreSQL writes the JSON; tests check that it matches the schemas.
"""

from __future__ import annotations

import msgspec


class Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass
