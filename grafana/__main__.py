"""Write the generated files: the dashboards, the rules for Kubernetes, and the address of docs.url
in the alerts."""

from __future__ import annotations

from grafana.written import written


def main() -> None:
    for path, text in written().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


main()
