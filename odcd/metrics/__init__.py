"""What Prometheus reads: counters of this process, and, of the leader, figures of the cluster."""

from odcd.metrics.process import Metrics

__all__ = ["Metrics"]
