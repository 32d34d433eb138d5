"""Thousands of requests made from the API's own document, as an operator, a user and a stranger,
to a real daemon: none fails, and every answer is as the document says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import Odc

CASES = int(os.environ.get("ODC_SCHEMA_CASES", "1500"))
"""About so many requests. The edges of every field, some 6,000 requests, are tried by the operator
and the user, or by each of the three where there are to be more than 10,000."""
THOROUGH = CASES > 10_000
SEED = "14"
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "response_headers_conformance",
)  # fmt: skip
OF_THE_KEY = "/v1/keys/|/v1/users/{user}/keys"
"""These would end the key that all others are asked by."""
WAITING = "/events|/attach|/logs|/ssh|/jupyter"
"""Streams, and what is no plain HTTP."""
CONFIG = """\
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501", "503"]
"""
GENERATED = re.compile(r"^ *(\d+) generated", re.MULTILINE)


def attack(folder: Path, address: str, key: str | None, *, edges: bool, examples: int) -> int:
    """Send the requests of one role; returns their number. Fails with the findings."""
    folder.mkdir()
    (folder / "schemathesis.toml").write_text(CONFIG)
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli",
            "--config-file", folder / "schemathesis.toml", "run", f"{address}/openapi.json",
            *(() if key is None else ("-H", f"Authorization: Bearer {key}")),
            "--checks", ",".join(CHECKS), "--max-examples", str(examples),
            "--phases", "coverage,fuzzing" if edges else "fuzzing",
            # With threads, Python 3.11 fails at times when Hypothesis describes a strategy.
            "--workers", "1", "--seed", SEED, "--request-timeout", "30", "--no-shrink",
            "--continue-on-failure", "--exclude-path-regex", f"{WAITING}|{OF_THE_KEY}",
            "--no-color", "--warnings", "off",
        ],
        capture_output=True, text=True, timeout=3000, cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    found = GENERATED.search(done.stdout)
    assert found is not None, done.stdout[-3000:]
    return int(found[1])


@pytest.mark.long
def test_every_answer_matches_the_openapi_document(odc: Odc, tmp_path: Path) -> None:
    port = free_port()
    odc.environment |= {"ODC_USER_REQUESTS": "0", "ODC_LISTEN": f"127.0.0.1:{port}"}
    odc.up("--node", "n[1-4]=h100:8")
    odc.submit("--gpus", "1", "--wrap", "sleep 1000")
    odc.submit("--gpus", "8", "--array", "1-5", "--hold", "--wrap", "true")
    roles = {
        "operator": odc.odcd("token", "root").stdout.strip(),
        "user": odc.odcd("token", "eve", "--uid", "64001").stdout.strip(),
        "stranger": None,
    }
    with ThreadPoolExecutor() as pool:
        counts = list(
            pool.map(
                lambda role: attack(
                    tmp_path / role, f"http://127.0.0.1:{port}", roles[role],
                    edges=THOROUGH or role != "stranger", examples=10 if THOROUGH else 3,
                ),
                roles,
            )
        )  # fmt: skip
    print(dict(zip(roles, counts, strict=True)))
    assert sum(counts) >= CASES
