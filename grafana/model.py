"""Types and data sources that panels and dashboards share."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

PROMETHEUS = {"type": "prometheus", "uid": "${datasource}"}
POSTGRES = {"type": "grafana-postgresql-datasource", "uid": "${database}"}

Query = tuple[str, str]
"""An expression, and the name of its series in the legend."""
