"""Prometheus metrics: counters of this process, and, on the leader, metrics of the cluster."""

from odcd.metrics.process import Metrics

__all__ = ["Metrics"]
