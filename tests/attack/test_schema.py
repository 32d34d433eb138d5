"""Thousands of requests made from the API's own document, as an operator, a user and a stranger,
to a real daemon: none fails, and every answer is as the document says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
