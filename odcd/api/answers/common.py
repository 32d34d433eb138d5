"""What all answers of the API have in common: the schemas of /openapi.json. PostgreSQL writes the
JSON; tests hold the two together."""

from __future__ import annotations

import msgspec


class Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass
