"""Limits the refused logins of an address and of a credential."""

from __future__ import annotations

from collections import OrderedDict, deque

from odcd.clock import Clock
from odcd.errors import TooManyLogins
from odcd.front.proxies import network_of

WINDOW_S = 60.0
MAX_PER_ADDRESS = 30
"""The maximum of refused logins of one address within the window, and of its refusals in the audit
log."""
MAX_PER_CREDENTIAL = 10
KEPT = 10_000
KNOWN_S = 86_400.0
"""How long an accepted credential is remembered."""


class Limiter:
    """Counts refusals that cost a request to AWS, by address and by credential.

    Many users may share an address, such as that of a company or of a proxy that is not configured.
    So a credential that was accepted from there recently is not rejected because of others. An IPv6
    network of 64 bits, which one person controls, counts as one address.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._addresses = _Counts(clock, MAX_PER_ADDRESS)
        self._credentials = _Counts(clock, MAX_PER_CREDENTIAL)
        self._notes = _Counts(clock, MAX_PER_ADDRESS)
        self._known: OrderedDict[str, float] = OrderedDict()

    def check(self, address: str, credential: str) -> None:
        """Raises TooManyLogins."""
        network = network_of(address)
        both = f"{network} {credential}"
        if self._credentials.full(both):
            raise TooManyLogins(
                f"{MAX_PER_CREDENTIAL} logins with this access key were refused within a minute",
                "Wait a minute, correct the problem, then log in again.",
            )
        if self._addresses.full(network) and not self._is_known(both):
            raise TooManyLogins(
                f"{MAX_PER_ADDRESS} logins from this address were refused within a minute",
                "Wait a minute, correct the problem, then log in again.",
            )

    def refused(self, address: str, credential: str) -> None:
        network = network_of(address)
        self._addresses.add(network)
        self._credentials.add(f"{network} {credential}")

    def accepted(self, address: str, credential: str) -> None:
        both = f"{network_of(address)} {credential}"
        self._known[both] = self._clock.monotonic() + KNOWN_S
        self._known.move_to_end(both)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)

    def may_note(self, address: str) -> bool:
        """Whether one more refusal of this address is logged; counts it."""
        network = network_of(address)
        if self._notes.full(network):
            return False
        self._notes.add(network)
        return True

    def _is_known(self, both: str) -> bool:
        return self._known.get(both, 0.0) > self._clock.monotonic()


class _Counts:
    """Counts events per key within the window, up to a limit."""

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def full(self, key: str) -> bool:
        times = self._times.get(key, deque[float]())
        while times and times[0] <= self._clock.monotonic() - WINDOW_S:
            times.popleft()
        return len(times) >= self._limit

    def add(self, key: str) -> None:
        self._times.setdefault(key, deque(maxlen=self._limit)).append(self._clock.monotonic())
        self._times.move_to_end(key)
        if len(self._times) > KEPT:
            # Drop the key that was inactive for longest, so that no one can reset a count by using
            # other keys.
            self._times.popitem(last=False)
