"""All stores of one database, one per subject.

A store has one typed method per SQL entry function, nothing else. Every call is one transaction; a
change of many jobs is several (odcd.stores.changes).

Methods that return JSON text pass on what the database wrote, and the API sends it unchanged. Each
raises the OdcError whose code the function raised, or DatabaseDown.
"""

from __future__ import annotations

from odcd.database.pool import Database
from odcd.stores.accounting import AccountingStore
from odcd.stores.accounts import AccountStore
from odcd.stores.attempts import AttemptStore
from odcd.stores.bookings import BookingStore
from odcd.stores.builds import BuildStore
from odcd.stores.canaries import CanaryStore
from odcd.stores.cluster import ClusterStore
from odcd.stores.cron import CronStore
from odcd.stores.dev_servers import DevServerStore
from odcd.stores.disk_work import DiskWorkStore
from odcd.stores.disks import DiskStore
from odcd.stores.dispatches import DispatchStore
from odcd.stores.elastic import ElasticStore
from odcd.stores.events import EventStore
from odcd.stores.gpu_types import GpuTypeStore
from odcd.stores.gpu_use import GpuUseStore
from odcd.stores.jobs import JobStore
from odcd.stores.keys import KeyStore
from odcd.stores.leader import LeaderStore
from odcd.stores.licences import LicenceStore
from odcd.stores.logins import LoginStore
from odcd.stores.nodes import NodeStore
from odcd.stores.notifications import NotificationStore
from odcd.stores.outputs import OutputStore
from odcd.stores.page import PageStore
from odcd.stores.page_sessions import PageSessionStore
from odcd.stores.partitions import PartitionStore
from odcd.stores.plans import PlanStore
from odcd.stores.policies import PolicyStore
from odcd.stores.qos import QosStore
from odcd.stores.reservations import ReservationStore
from odcd.stores.steps import StepStore
from odcd.stores.users import UserStore


class Store:
    """Code that needs only one subject takes the store of that subject."""

    def __init__(self, database: Database) -> None:
        self.accounting = AccountingStore(database)
        self.accounts = AccountStore(database)
        self.attempts = AttemptStore(database)
        self.bookings = BookingStore(database)
        self.builds = BuildStore(database)
        self.canaries = CanaryStore(database)
        self.cluster = ClusterStore(database)
        self.cron = CronStore(database)
        self.dev_servers = DevServerStore(database)
        self.disk_work = DiskWorkStore(database)
        self.disks = DiskStore(database)
        self.dispatches = DispatchStore(database)
        self.elastic = ElasticStore(database)
        self.events = EventStore(database)
        self.gpu_types = GpuTypeStore(database)
        self.gpu_use = GpuUseStore(database)
        self.jobs = JobStore(database)
        self.keys = KeyStore(database)
        self.leader = LeaderStore(database)
        self.licences = LicenceStore(database)
        self.logins = LoginStore(database)
        self.nodes = NodeStore(database)
        self.notifications = NotificationStore(database)
        self.outputs = OutputStore(database)
        self.page = PageStore(database)
        self.page_sessions = PageSessionStore(database)
        self.partitions = PartitionStore(database)
        self.plans = PlanStore(database)
        self.policies = PolicyStore(database)
        self.qos = QosStore(database)
        self.reservations = ReservationStore(database)
        self.steps = StepStore(database)
        self.users = UserStore(database)
