"""Links from dashboards to runbooks, and to odc's own page."""

from __future__ import annotations

from pathlib import Path

from grafana.model import Json

COPY = (Path(__file__).parent / "docs.url").read_text(encoding="utf-8").strip()
"""The address of the copy of odc with the docs/ for links; operators may change it."""
DOCS = f"{COPY}/docs/operating"


def runbook(alert: str) -> Json:
    """A panel's link to the runbook of the alert on the same metrics."""
    name = "".join(f"-{c.lower()}" if c.isupper() else c for c in alert).lstrip("-")
    return {
        "title": f"Runbook of {alert}",
        "url": f"{DOCS}/runbooks/{name}.md",
        "targetBlank": True,
    }


def page(title: str, path: str = "/") -> Json:
    """A link to odc's own page."""
    return {"title": title, "url": f"${{odc}}{path}", "targetBlank": True}


def to_job(column: str, title: str = "Open the job") -> dict[str, Json]:
    """The links for a table's column of job ids."""
    return {column: page(title, "/page/jobs/${__value.raw}")}


def runbooks() -> Json:
    """A dashboard's link to the list of runbooks."""
    return dashboard_link("Runbooks", f"{DOCS}/runbooks/README.md")


def dashboard_link(title: str, url: str) -> Json:
    """A link in the head of a dashboard."""
    return {
        "type": "link", "title": title, "url": url, "icon": "external link", "targetBlank": True,
        "tags": [], "asDropdown": False, "includeVars": False, "keepTime": False, "tooltip": "",
    }  # fmt: skip
