"""One module per dashboard; `all_boards` returns the dashboards for grafana/dashboards/."""

from __future__ import annotations

from grafana.boards import capacity, dev_servers, gpus, job, queue, scheduler, users
from grafana.model import Json


def all_boards() -> list[Json]:
    return [
        module.board() for module in (capacity, queue, users, job, dev_servers, scheduler, gpus)
    ]
