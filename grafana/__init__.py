"""Dashboards, rules and alerts of odc. `python -m grafana` writes the generated files."""
