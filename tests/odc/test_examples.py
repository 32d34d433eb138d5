"""The examples of docs/reference/python-client.md run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.daemon import Odc

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python-client.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
PRINTED = (
    "COMPLETED 0\nhello\n\n",
    "task 1 of three\n\ntask 2 of three\n\ntask 3 of three\n\n",
    "the job would start",
    'OD001 partition "nowhere" does not exist You may submit to: main.\n',
    "['COMPLETED', 'COMPLETED', 'COMPLETED']\n",
    "6 COMPLETED\n[1.0, 2.0, 3.0]\n",
)
"""A part of the output of each."""


@pytest.mark.parametrize(("example", "printed"), list(zip(EXAMPLES, PRINTED, strict=True)))
def test_an_example_prints_what_the_page_promises(odc: Odc, example: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example], env=odc.environment, cwd=odc.work, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout or sorted(printed.split()) == sorted(done.stdout.split())
