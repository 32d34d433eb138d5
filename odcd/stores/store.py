"""One typed method per SQL entry function, nothing else. Every call is one transaction;
a change of many jobs is several (odcd.stores.changes).

Methods that answer with a JSON text hand on what the database wrote: the API sends it as it is.
Each raises the OdcError whose code the function raised, or DatabaseDown.
"""

from __future__ import annotations

from odcd.stores.accounts import AccountStore
from odcd.stores.builds import BuildStore
from odcd.stores.changes import ChangeStore
from odcd.stores.cluster import ClusterStore
from odcd.stores.disks import DiskStore
from odcd.stores.gpu_use import GpuUseStore
from odcd.stores.keys import KeyStore
from odcd.stores.leader import LeaderStore
from odcd.stores.pages import PageStore
from odcd.stores.queries import QueryStore


class Store(
    ChangeStore, QueryStore, LeaderStore, ClusterStore, AccountStore, KeyStore, DiskStore,
    BuildStore, GpuUseStore, PageStore,
):  # fmt: skip
    """The parts, each a module of its own; reservations are a part of the leader's."""
