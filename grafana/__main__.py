"""Write what is generated: the dashboards, the rules as Kubernetes takes them, and in alerts the
address of docs.url."""

from __future__ import annotations

from grafana.written import written


def main() -> None:
    for path, text in written().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


main()
