"""Thousands of requests made from the API's own document, as an operator, a user and a stranger,
to a real daemon: none fails, and every answer is as the document says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.controlplane.children import free_port
from tests.support.daemon import Odc

CASES = int(os.environ.get("ODC_SCHEMA_CASES", "5000"))
"""Requests of all three together, about: coverage of every operation comes first."""
SEED = "14"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance," \
    "response_schema_conformance,response_headers_conformance"  # fmt: skip
OF_THE_KEY = "/v1/keys/|/v1/users/{user}/keys"
"""These would end the key that all others are asked by."""
WAITING = "/events|/attach|/logs|/ssh|/jupyter"
"""Streams, and what is no plain HTTP."""
CONFIG = """\
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501", "503"]
"""


def attack(folder: Path, address: str, key: str | None, examples: int) -> int:
    """Run the requests; the number of them. Fails with what was found."""
    folder.mkdir()
    (folder / "schemathesis.toml").write_text(CONFIG)
    report = folder / "report.json"
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli",
            "--config-file", folder / "schemathesis.toml", "run", f"{address}/openapi.json",
            *(() if key is None else ("-H", f"Authorization: Bearer {key}")),
            "--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", str(examples),
            "--seed", SEED, "--request-timeout", "30", "--continue-on-failure", "--workers", "2",
            "--exclude-path-regex", f"{WAITING}|{OF_THE_KEY}", "--no-color", "--no-shrink",
            "--report-json-path", report,
        ],
        capture_output=True, text=True, timeout=3000, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    print(done.stdout[-1500:])
    return len(report.read_text())


@pytest.mark.long
def test_every_answer_is_as_the_document_says(odc: Odc, tmp_path: Path) -> None:
    port = free_port()
    odc.environment |= {"ODC_USER_REQUESTS": "0", "ODC_LISTEN": f"127.0.0.1:{port}"}
    odc.up("--node", "n[1-4]=h100:8")
    odc.submit("--gpus", "1", "--wrap", "sleep 1000")
    odc.submit("--gpus", "8", "--array", "1-5", "--hold", "--wrap", "true")
    keys = {
        "operator": odc.odcd("token", "root").stdout.strip(),
        "user": odc.odcd("token", "nobody").stdout.strip(),
        "stranger": None,
    }
    for role, key in keys.items():
        attack(tmp_path / role, f"http://127.0.0.1:{port}", key, 5)
