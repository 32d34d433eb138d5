"""A real Prometheus on loopback, what it scrapes when no exporter is at hand, and promtool."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.support.harness.controlplane.children import free_port

PATIENCE_S = 60
TEXT = "text/plain; version=0.0.4; charset=utf-8"

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="needs prometheus and promtool: apt-get install prometheus",
)


class Exporter:
    """Serves the current result of `render` at /metrics."""

    def __init__(self, render: Callable[[], str]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = render().encode()
                self.send_response(200)
                self.send_header("Content-Type", TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@dataclass(frozen=True, kw_only=True)
class Scrape:
    """A job of the scrape configuration, with one target or several."""

    job: str
    targets: Sequence[str]
    honor_labels: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    """Of the targets, as service discovery sets them: namespace and pod of the exporter."""


class QueryRefused(AssertionError):
    """Prometheus did not accept an expression, or could not evaluate it."""


class Prometheus:
    """prometheus(1) in its own folder; use it with `with`. Blocks created before it stay."""

    def __init__(
        self, folder: Path, *, scrapes: Iterable[Scrape] = (), rules: Iterable[Path] = (),
        every_s: float = 0.5, options: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """options: more arguments of prometheus(1)."""
        self.folder = folder
        self.options = options
        self.data = folder / "data"
        self.scrapes = list(scrapes)
        self._rules = [path.resolve() for path in rules]
        self._every = f"{round(every_s * 1000)}ms"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._configure()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus", f"--config.file={self.folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self.data}", "--storage.tsdb.retention.time=10y",
                    f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-lifecycle",
                    "--log.level=warn", *self.options,
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.until(self._ready, "it is ready")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def change(
        self, *, scrapes: Iterable[Scrape] | None = None, rules: Iterable[Path] | None = None
    ) -> None:
        """Another configuration, in force when this returns."""
        if scrapes is not None:
            self.scrapes = list(scrapes)
        if rules is not None:
            self._rules = [path.resolve() for path in rules]
        self._configure()
        status, text = self._ask("POST", "/-/reload")
        assert status == 200, text

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The vector an expression gives: [{metric: labels, value: [time, text]}].

        Raises QueryRefused when it does not parse or cannot be answered.
        """
        given = {"query": expression} | ({} if at is None else {"time": f"{at:.3f}"})
        answer = self._api("query", given)
        if answer["resultType"] == "scalar":
            return [{"metric": {}, "value": answer["result"]}]
        return answer["result"]

    def query_range(
        self, expression: str, *, last_s: float = 60, step_s: float = 1
    ) -> list[dict[str, Any]]:
        now = time.time()
        given = {
            "query": expression, "start": f"{now - last_s:.3f}", "end": f"{now:.3f}",
            "step": f"{step_s}",
        }  # fmt: skip
        return self._api("query_range", given)["result"]

    def values(self, expression: str, at: float | None = None) -> list[float]:
        return [float(row["value"][1]) for row in self.query(expression, at)]

    def value(self, expression: str, at: float | None = None) -> float:
        found = self.values(expression, at)
        assert len(found) == 1, f"{expression}: {found}"
        return found[0]

    def names(self) -> set[str]:
        """The names of all its metrics."""
        return set(self._api("label/__name__/values", {}))

    def rules(self) -> list[dict[str, Any]]:
        """Every rule as Prometheus sees it: name, type, health, lastError, alerts, state."""
        return [rule for group in self._api("rules", {})["groups"] for rule in group["rules"]]

    def targets(self) -> dict[str, str]:
        """The state of each target, by its address: up, down, unknown."""
        found = self._api("targets", {})["activeTargets"]
        return {each["labels"]["instance"]: each["health"] for each in found}

    def until(self, look: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
        """The first result of look() that is not empty."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            if found := look():
                return found
            time.sleep(0.1)
        raise AssertionError(f"waited {patience_s} s until {what}{self.log()}")

    def log(self) -> str:
        return "\n" + (self.folder / "log").read_text(errors="replace")[-3000:]

    def _configure(self) -> None:
        config = {
            "global": {"scrape_interval": self._every, "scrape_timeout": self._every,
                       "evaluation_interval": self._every},
            "rule_files": [str(path) for path in self._rules],
            "scrape_configs": [
                {
                    "job_name": one.job,
                    "honor_labels": one.honor_labels,
                    "static_configs": [{"targets": list(one.targets), "labels": one.labels}],
                }
                for one in self.scrapes
            ],
        }  # fmt: skip
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")

    def _ready(self) -> bool:
        try:
            return self._ask("GET", "/-/ready")[0] == 200
        except OSError:
            return False

    def _api(self, what: str, given: dict[str, str]) -> Any:
        status, text = self._ask("GET", f"/api/v1/{what}?{urllib.parse.urlencode(given)}")
        answer = json.loads(text)
        if status != 200 or answer["status"] != "success":
            raise QueryRefused(f"{answer.get('error')}: {given.get('query', what)}")
        assert "warnings" not in answer, answer["warnings"]
        return answer["data"]

    def _ask(self, method: str, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


def promtool(*argv: str | Path, given: str | None = None, cwd: Path | None = None) -> str:
    """The output of promtool. Raises AssertionError with all of it if promtool reports errors."""
    done = subprocess.run(
        ["promtool", *map(str, argv)],
        input=given, capture_output=True, text=True, cwd=cwd, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"promtool {argv}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr
