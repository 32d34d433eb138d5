"""Dashboards, rules and alerts of odc. `python -m grafana` writes what is generated of it."""
