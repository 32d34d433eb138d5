"""Which daemon a command speaks to, and with which token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from odcctl.exits import WrongUsage
from odcctl.http.address import Address, parse_address
from tests.odcctl.conftest import Odcctl
from tests.odcctl.peer import Peer, TcpPeer, serving

EMPTY = {"jobs": [], "next": None}


@pytest.fixture
def tcp_peer() -> Iterator[TcpPeer]:
    with serving(TcpPeer()) as server:
        yield server


def _peer(path: Path) -> Peer:
    path.parent.mkdir(parents=True, exist_ok=True)
    peer = Peer(path)
    peer.on("GET", "/v1/jobs", EMPTY)
    return peer


def test_the_first_server_that_is_set_decides(odcctl: Odcctl, home: Path) -> None:
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'server = "{home}/config.sock"\n')
    places = {
        "option": home / "option.sock", "variable": home / "variable.sock",
        "home": home / "h" / "odcd.sock", "config": home / "config.sock",
        "usual": home / ".odc" / "odcd.sock",
    }  # fmt: skip
    peers = {name: _peer(path) for name, path in places.items()}

    def answers(*argv: str, **env: str) -> str:
        """Which of the peers a queue reaches."""
        before = {name: len(peer.requests) for name, peer in peers.items()}
        assert odcctl(*argv, **env).code == 0
        return next(name for name, peer in peers.items() if len(peer.requests) > before[name])

    with serving(*peers.values()):
        every = {"ODC_SERVER": str(places["variable"]), "ODC_HOME": str(home / "h")}
        assert answers("queue", "--server", str(places["option"]), **every) == "option"
        assert answers("--server", f"unix:{places['option']}", "queue", **every) == "option"
        assert answers("queue", **every) == "variable"
        assert answers("queue", ODC_HOME=str(home / "h")) == "home"
        assert answers("queue", ODC_HOME="") == "config"
        config.unlink()
        assert answers("queue", ODC_HOME="") == "usual"


def test_a_daemon_that_was_named_and_is_away_is_not_replaced_by_another(
    odcctl: Odcctl, home: Path
) -> None:
    usual = _peer(home / ".odc" / "odcd.sock")
    with serving(usual):
        done = odcctl("cancel", "--all", ODC_HOME=str(home / "mine"))
    assert done.code == 3
    assert usual.requests == []
    away = odcctl("queue", ODC_HOME="")
    assert away.err.count("\n  tried ") == 2
    assert ".odc/odcd.sock: nothing listens there" in away.err


def test_a_token_goes_over_tcp_and_to_its_own_server_only(
    odcctl: Odcctl, home: Path, tcp_peer: TcpPeer
) -> None:
    tcp_peer.on("GET", "/v1/jobs", EMPTY)
    url = f"http://127.0.0.1:{tcp_peer.server_address[1]}"

    def sent(*argv: str, **env: str) -> str | None:
        done = odcctl("queue", *argv, **{"ODC_HOME": "", **env})
        assert done.code == 0, done.err
        return tcp_peer.requests[-1].headers.get("authorization")

    assert sent("--server", url) is None
    assert sent("--server", url, ODC_TOKEN="abc") == "Bearer abc"
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'server = "{url}"\ntoken = "from the file"\n')
    assert sent() == "Bearer from the file"
    assert sent(ODC_TOKEN="abc") == "Bearer abc"
    assert sent("--server", url.replace("127.0.0.1", "localhost")) is None
    local = _peer(home / "odcd.sock")
    with serving(local):
        assert odcctl("queue", ODC_TOKEN="abc").code == 0
    assert "authorization" not in local.requests[0].headers


def test_a_broken_config_file_is_named(odcctl: Odcctl, home: Path) -> None:
    config = home / ".config" / "odcctl" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("server = ")
    done = odcctl("queue", ODC_HOME="")
    assert done.code == 2
    assert f"{config} is not valid TOML" in done.err


def test_a_server_that_speaks_no_http_is_told(odcctl: Odcctl, home: Path) -> None:
    class Other(ThreadingHTTPServer):
        """Answers everything with something else."""

        def finish_request(self, request: object, client_address: object) -> None:
            request.sendall(b"220 mail.example ESMTP\r\n")  # type: ignore[attr-defined]

    server = Other(("127.0.0.1", 0), None)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    done = odcctl("queue", "--server", f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    thread.join()
    server.server_close()
    assert done.code == 3
    assert done.err.startswith(
        "odcctl: the connection to the daemon was lost before it answered: not an HTTP answer"
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("/run/odc/odcd.sock", Address("/run/odc/odcd.sock")),
        ("unix:/x.sock", Address("/x.sock")),
        ("http://odc.example:8080", Address(None, "odc.example", 8080, False)),
        ("https://[::1]:8443/", Address(None, "::1", 8443, True)),
        ("https://odc.example.org", Address(None, "odc.example.org", 443, True)),
        ("https://[::1]/", Address(None, "::1", 443, True)),
        ("http://odc", Address(None, "odc", 80, False)),
    ],
)
def test_an_address_is_a_path_or_a_url(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    ["https://host:x", "http://host:99999", "http://host:0", "http://", "https://:443", "https://::1",
     "https://host/path", "https://me@host", "https://host:", "https://a b"],
)  # fmt: skip
def test_a_url_has_a_host_and_may_have_a_port(text: str) -> None:
    with pytest.raises(WrongUsage, match="is not a server address"):
        parse_address(text)
