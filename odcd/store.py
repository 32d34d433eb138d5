"""One typed method per SQL entry function, nothing else. Every call is one transaction.

Methods that answer with a JSON text hand on what the database wrote: the API sends it as it is.
Each raises the OdcError whose code the function raised, or DatabaseDown.
"""

from __future__ import annotations

from odcd.account_store import AccountStore
from odcd.build_store import BuildStore
from odcd.change_store import ChangeStore
from odcd.cluster_store import ClusterStore
from odcd.disk_store import DiskStore
from odcd.gpu_use_store import GpuUseStore
from odcd.key_store import KeyStore
from odcd.leader_store import LeaderStore
from odcd.page_store import PageStore
from odcd.query_store import QueryStore


class Store(
    ChangeStore, QueryStore, LeaderStore, ClusterStore, AccountStore, KeyStore, DiskStore,
    BuildStore, GpuUseStore, PageStore,
):  # fmt: skip
    """The parts, each a module of its own; reservations are a part of the leader's."""
