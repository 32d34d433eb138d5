"""The filters shared by queries about what jobs use: by user, account, GPU type and kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from odcd.api.jobs import split_values


class WhoseQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter takes several values, separated by commas."""

    user: str | None = None
    account: str | None = None
    gpu_type: str | None = None
    kind: Literal["batch", "reservation"] | None = None

    def filters(self) -> dict[str, object]:
        """The filters in the form that SQL takes. Raises BadRequest."""
        given = {"user": self.user, "account": self.account, "gpu_type": self.gpu_type}
        named = {key: split_values(text, key) for key, text in given.items() if text is not None}
        return {**named, "kind": self.kind}

    def users(self) -> Sequence[str]:
        """The users that the query names."""
        return split_values(self.user, "user") or ()
