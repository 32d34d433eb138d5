"""One moto for these tests, with the fixtures of the tests of disks."""

from __future__ import annotations

from tests.odcd.disks.conftest import (
    _one_model_of_aws,  # pyright: ignore[reportPrivateUsage]
    fake,
    moto_port,
)

__all__ = ["_one_model_of_aws", "fake", "moto_port"]
