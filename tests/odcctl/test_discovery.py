"""A user without a configured server learns about the server of the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odcctl.http import discovery


def test_search_domains_are_those_of_the_c_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = tmp_path / "resolv.conf"
    monkeypatch.setattr(discovery, "RESOLVER", str(resolver))
    monkeypatch.delenv("LOCALDOMAIN", raising=False)
    assert discovery.search_domains() == []
    resolver.write_text(
        "# search not.this\nnameserver 10.0.0.1\ndomain a.example\nsearch b.example c.example\n"
    )
    assert discovery.search_domains() == ["b.example", "c.example"]
    monkeypatch.setenv("LOCALDOMAIN", "d.example")
    assert discovery.search_domains() == ["d.example"]
    monkeypatch.setenv("LOCALDOMAIN", " ".join(f"d{n}.example" for n in range(100)))
    assert len(discovery.search_domains()) == discovery.MAX_DOMAINS


def test_a_name_that_is_none_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", " ", "x" * 300, "a..b", "é" * 70, "\x00"):
        monkeypatch.setattr(discovery, "search_domains", lambda text=text: text.split() or [])
        assert discovery.find_in_network() is None


IN_A_NETWORK = """
mount --bind "$1/hosts" /etc/hosts && mount --bind "$1/resolv.conf" /etc/resolv.conf
exec "$2" -m odcctl queue
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root for a mount namespace"
)
@pytest.mark.parametrize("host", ["odc.lab.example", "other.lab.example"])
def test_the_server_of_the_network_is_suggested_and_nothing_is_sent_to_it(
    tmp_path: Path, host: str
) -> None:
    (tmp_path / "hosts").write_text(f"127.0.0.1 localhost {host}\n")
    (tmp_path / "resolv.conf").write_text("search lab.example\noptions timeout:1 attempts:1\n")
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ODC_TOKEN": "secret"}
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_A_NETWORK, "sh", str(tmp_path), sys.executable],
        capture_output=True, text=True, timeout=60, check=False, env=kept,
    )  # fmt: skip
    if "permission denied" in done.stderr.lower():
        pytest.skip("this machine forbids mounts")
    assert done.returncode == 3
    line = "Or use the server of your network: odcctl config set server https://odc.lab.example"
    assert (line in done.stderr) == (host == "odc.lab.example"), done.stderr
