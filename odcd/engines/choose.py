"""Chooses the executor from the settings; a leader creates one for its term."""

from __future__ import annotations

import importlib

from odcd.clock import Clock
from odcd.engines.base import Engine, Launcher
from odcd.metrics import Metrics
from odcd.settings import Settings
from odcd.stores.store import Store


def load_engine(executor: str) -> None:
    """Import what make_engine needs. Later the process may not be able to read its own files."""
    importlib.import_module(f"odcd.engines.{executor}")


def make_engine(
    settings: Settings, store: Store, clock: Clock, launcher: Launcher, metrics: Metrics
) -> Engine:
    # Each loads only its own libraries: a daemon starts a sixth faster.
    if settings.executor == "kubernetes":
        from odcd.engines.kubernetes import KubernetesEngine

        return KubernetesEngine(
            settings, store, clock, metrics.backend("kubernetes"), metrics.rounds
        )
    from odcd.engines.local import LocalEngine

    return LocalEngine(settings, store, clock, launcher, metrics.backend("runner"))
