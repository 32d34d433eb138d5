"""A daemon's settings: from arguments, then the environment, then defaults."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from odcd.errors import BadRequest
from odcd.executor.declared_nodes import parse_nodes
from odcd.executor.hook_settings import read_hooks
from odcd.settings import DeclaredNode, Settings, find_home, parse_address, read_settings
from tests.support.harness.arguments import read_arguments


def read(*argv: str, **environment: str) -> Settings:
    return read_settings(read_arguments(["up", *argv]), environment)


def test_without_arguments_everything_has_its_default() -> None:
    settings = read()
    root = os.geteuid() == 0
    assert settings.home == (Path("/var/lib/odc") if root else Path.home() / ".odc")
    assert settings.socket == (Path("/run/odc/odcd.sock") if root else settings.home / "odcd.sock")
    assert settings.socket_mode == (0o666 if root else 0o600)
    assert (settings.nodes, settings.self_node, settings.listen) == ((), True, None)
    assert settings.grace == timedelta(seconds=30)


def test_an_argument_goes_before_the_environment() -> None:
    assert read("--home", "/a", ODC_HOME="/b").home == Path("/a")
    assert read(ODC_HOME="/b").home == Path("/b")
    assert read(ODC_HOME="/b").socket == Path("/b/odcd.sock")
    assert read("--listen", ":1", ODC_LISTEN=":2").listen == ("0.0.0.0", 1)


def test_up_chooses_a_port_for_the_page_unless_listen_is_set() -> None:
    settings = read()
    assert settings.listen is None
    ports = range(720, 728) if os.geteuid() == 0 else range(7070, 7080)
    assert settings.listen_first == tuple(("127.0.0.1", port) for port in ports)
    for without_port in (read("--listen", "none"), read(ODC_LISTEN="none")):
        assert (without_port.listen, without_port.listen_first) == (None, ())
    assert read("--listen", ":1").listen_first == ()
    served = read_settings(read_arguments(["serve", "--dsn", "x"]), {})
    assert (served.listen, served.listen_first) == (None, ())


def test_the_environment_sets_times_and_operators() -> None:
    settings = read(ODC_LEASE_S="2.5", ODC_GRACE_S="5", ODC_OPERATORS="ann, bob")
    assert (settings.lease, settings.grace) == (timedelta(seconds=2.5), timedelta(seconds=5))
    assert settings.operators == {"ann", "bob"}


@pytest.mark.parametrize("text", ["", "soon", "0", "-1", "1e9", "nan"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="ODC_LEASE_S"):
        read(ODC_LEASE_S=text)


def test_a_relative_home_is_taken_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert find_home("queue", {}) == Path("/tmp/queue")


def test_a_home_too_long_for_its_sockets_is_refused() -> None:
    with pytest.raises(BadRequest, match="too long: its sockets would have"):
        find_home("/" + "x" * 90, {})


def test_declared_nodes_are_parsed() -> None:
    nodes, self_node = parse_nodes(["a=h100:8", "c[1-2]=cpu-x86:0x16"])
    assert nodes == (
        DeclaredNode(name="a", gpu_type="h100", gpus=8, cpus=None),
        DeclaredNode(name="c1", gpu_type="cpu-x86", gpus=0, cpus=16),
        DeclaredNode(name="c2", gpu_type="cpu-x86", gpus=0, cpus=16),
    )
    assert not self_node


@pytest.mark.parametrize(
    ("place", "zone", "group", "topology"),
    [
        ("@a", "a", None, ()),
        ("@a/", "a", None, ()),
        ("@a/g", "a", "g", ()),
        ("@a/g/s1/b1", "a", "g", ("s1", "b1")),
        ("@//b1", None, None, ("b1",)),
    ],
)
def test_a_declared_node_lies_somewhere(
    place: str, zone: str | None, group: str | None, topology: tuple[str, ...]
) -> None:
    [node], _ = parse_nodes([f"a=h100:8x4{place}"])
    assert (node.cpus, node.zone, node.efa_domain, node.topology) == (4, zone, group, topology)


def test_with_declared_nodes_the_machine_is_one_only_when_named() -> None:
    assert parse_nodes([])[1]
    assert parse_nodes(["self"]) == ((), True)
    assert not parse_nodes(["a=h100:8"])[1]
    assert parse_nodes(["a=h100:8", "self"])[1]


@pytest.mark.parametrize(
    "text",
    [
        "a", "a=", "a=h100", "a=h100:", "a=h100:x", "a=h100:8x", "a=h100:8x0", "a=h100:63",
        "=h100:8", "a b=h100:8", "a[1=h100:8", "a=h100:-1", "a=h100:8x999999", "a=h100:8@a/g//b1",
        "a=h100:8@a/g/", "a=h100:8@a b",
    ],
)  # fmt: skip
def test_an_invalid_node_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        parse_nodes([text])


def test_a_node_declared_twice_is_refused() -> None:
    with pytest.raises(BadRequest, match="declared twice"):
        parse_nodes(["a[1-3]=h100:8", "a2=l4:4"])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7070", ("127.0.0.1", 7070)),
        ("[::1]:7070", ("::1", 7070)),
        (":7070", ("0.0.0.0", 7070)),
        ("node.example:0", ("node.example", 0)),
    ],
)
def test_addresses_are_parsed(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["7070", "host", "host:", "host:99999", "::1:7070", "host:x"])
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="HOST:PORT"):
        parse_address(text)


@pytest.mark.parametrize("name", ["ODC_PROLOG", "ODC_EPILOG", "ODC_TASK_PROLOG", "ODC_TASK_EPILOG"])
def test_hooks_are_refused_on_kubernetes_where_they_would_have_no_effect(name: str) -> None:
    with pytest.raises(BadRequest, match=f"{name} has no effect on Kubernetes"):
        read_hooks({name: "/bin/true"}, local=False)


def test_a_hook_must_be_a_program_that_only_the_operator_can_change(tmp_path: Path) -> None:
    path = tmp_path / "hook"
    path.write_text("#!/bin/sh\n")
    for text, why in (
        ("hook", "is not an absolute path"),
        (str(tmp_path), "is not a regular file"),
        (str(tmp_path / "none"), "No such file"),
        (str(path), "is not executable"),
    ):
        with pytest.raises(BadRequest, match=why):
            read_hooks({"ODC_PROLOG": text}, local=True)
    path.chmod(0o755)
    read = read_hooks({"ODC_PROLOG": str(path), "ODC_PROLOG_TIMEOUT_S": "5"}, local=True)
    assert (read["prolog"], read["prolog_timeout"].total_seconds()) == (str(path), 5.0)
    assert read["epilog_timeout"].total_seconds() == 60.0
