"""Streams of new events, and waits for the end of jobs."""

from odcd.events.event import Event, Heartbeat, Lagged, Wanted
from odcd.events.hub import EventHub

__all__ = ["Event", "EventHub", "Heartbeat", "Lagged", "Wanted"]
