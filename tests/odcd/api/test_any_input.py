"""The API answers every input, also where a daemon without Kubernetes offers nothing or where the
requests of tests/attack/test_schema.py would wait: builds, and connections to dev servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from odcd.records.api_keys import new_key
from odcd.records.job import Identity
from tests.odcd.api.service import Service, on_socket, serve
from tests.support.harness.depth import deep

CONFIG = """\
[checks.not_a_server_error]
# What odc knows and does not do yet; what needs the executor, which is not there.
expected-statuses = ["2xx", "3xx", "4xx", "501", "503"]
"""
PATHS = "/build|/ssh|/jupyter|/users/{user}/keys"
ENDLESS = "events|attach|logs"


@pytest.mark.long
@pytest.mark.parametrize("operator", [True, False])
def test_no_request_makes_the_daemon_fail(
    database_url: str, folder: Path, tmp_path: Path, operator: bool
) -> None:
    (tmp_path / "schemathesis.toml").write_text(CONFIG)

    async def work(service: Service) -> None:
        key, now = new_key(), service.api.clock.now()
        ann = Identity(user="ann", uid=64009, gid=64009, operator=operator)
        await service.store.keys.create(ann, key, now, timedelta(hours=1))
        for _ in range(3):
            await service.submit()
        await service.plan()
        async with on_socket(service, folder / "s", listen=("127.0.0.1", 0)) as server:
            [(host, port)] = server.addresses
            done = await asyncio.to_thread(
                subprocess.run,
                [
                    sys.executable, "-m", "schemathesis.cli",
                    "--config-file", tmp_path / "schemathesis.toml",
                    "run", f"http://{host}:{port}/openapi.json",
                    "-H", f"Authorization: Bearer {key.key}",
                    "--checks", "not_a_server_error", "--phases", "coverage,fuzzing",
                    "--max-examples", str(deep(4)), "--seed", "1", "--request-timeout", "20",
                    "--include-path-regex", PATHS, "--exclude-path-regex", ENDLESS, "--no-color",
                ],
                capture_output=True, text=True, timeout=1800, cwd=tmp_path, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert " 0 generated" not in done.stdout

    served = {
        "operators": frozenset(["ann"] if operator else []),
        "build_target": lambda: "r.example/b",
    }
    serve(database_url, work, nodes=2, **served)
