"""Whose jobs are told of, where what they use is told: the filters that such questions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from odcd.api.jobs import words


class WhoseQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several values are parted by commas."""

    user: str | None = None
    account: str | None = None
    gpu_type: str | None = None
    kind: Literal["batch", "reservation"] | None = None

    def filters(self) -> dict[str, object]:
        """As SQL takes them. Raises BadRequest."""
        told = {"user": self.user, "account": self.account, "gpu_type": self.gpu_type}
        named = {key: words(text, key) for key, text in told.items() if text is not None}
        return {**named, "kind": self.kind}

    def users(self) -> Sequence[str]:
        """The users named."""
        return words(self.user, "user") or ()
