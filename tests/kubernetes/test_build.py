"""Where the control plane's programs come from: given, cached, built once, or a word on how."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.harness.controlplane.build import NoBinaries, binaries

# Stands in for Go: it says its version, and "builds" by writing what -o names.
_GO = """#!/bin/sh
[ "$1" = env ] && { echo go1.99; exit; }
echo "$*" >> "$GO_CALLS"
while [ "$1" != -o ]; do shift; done
sleep 0.2
echo built > "$2"
"""


@pytest.fixture
def go_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for Go is the only one on the PATH; what it was asked to build."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    calls.touch()
    (tools / "go").write_text(_GO)
    (tools / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("GO_CALLS", str(calls))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return calls


def test_missing_programs_are_built_once_for_concurrent_callers(go_calls: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: binaries(("etcd", "kwok")), range(3)))
    assert found[0] == found[1] == found[2]
    assert found[0]["etcd"].read_text() == "built\n"
    assert len(go_calls.read_text().splitlines()) == 2


def test_the_version_goes_into_the_program(go_calls: Path) -> None:
    binaries(("kubectl",))
    calls = go_calls.read_text()
    assert "-X k8s.io/component-base/version.gitVersion=v1.36.3" in calls
    assert "-X k8s.io/component-base/version.gitMinor=36" in calls


def test_given_programs_are_preferred(
    go_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (assets / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    found = binaries(("etcd", "kube-apiserver", "kwok"))
    assert found["etcd"] == assets / "etcd"
    assert [line.split()[-1] for line in go_calls.read_text().splitlines()] == [
        "sigs.k8s.io/kwok/cmd/kwok"
    ]


def test_an_assets_folder_without_the_programs_is_an_error(
    go_calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(NoBinaries, match="has no kube-apiserver"):
        binaries()


def test_without_go_the_error_explains_the_alternatives_in_one_line(
    go_calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NoBinaries, match=r"KUBECONFIG_TEST.*KUBEBUILDER_ASSETS.*install Go") as why:
        binaries()
    assert "\n" not in str(why.value)
