"""Streams of new events, and waits for the end of jobs."""

from odcd.events.hub import Event, EventHub, Heartbeat, Lagged, Wanted

__all__ = ["Event", "EventHub", "Heartbeat", "Lagged", "Wanted"]
