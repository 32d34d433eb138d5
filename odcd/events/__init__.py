"""Streams of new events, and waits for the end of jobs."""

from odcd.events.event import Event, EventFilter, Heartbeat, Lagged
from odcd.events.hub import EventHub

__all__ = ["Event", "EventFilter", "EventHub", "Heartbeat", "Lagged"]
