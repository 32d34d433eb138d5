"""disk import: its requests, its table, and its messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odcctl.exits import Failure
from odcctl.http.address import Address
from odcctl.http.client import Client
from odcctl.reservations import disk_imports
from odcd.api.answers.disks import DiskImport
from tests.odcctl.conftest import Golden, Odcctl
from tests.odcctl.objects import Object, checked
from tests.odcctl.peer import Peer, Reply, problem

PATH = "/v1/disk-imports"


def found(**fields: Any) -> Object:
    base: Object = {
        "gpu_dev_user": "ann", "gpu_dev_disk": "main", "kind": "snapshot", "cloud_id": "snap-1",
        "size_gib": 100, "snapshot_count": 3, "last_used_at": "2026-06-30T18:00:00Z",
        "kms_key": None, "user": "ann", "name": "main", "outcome": "import", "why": None,
        "note": None,
    }  # fmt: skip
    return base | fields


def an_import(*disks: Object, **fields: Any) -> Object:
    answer: Object = {
        "id": 7, "state": "done", "apply": False, "user": "root",
        "asked_at": "2026-07-01T12:00:00Z", "trouble": None, "disks": list(disks),
    }  # fmt: skip
    return checked(answer | fields, DiskImport)


DISKS = (
    found(),
    found(gpu_dev_disk="data", name="data-2", kind="volume", cloud_id="vol-2", kms_key="arn:key-1",
          note="the older volume vol-1 of this disk in gpu-dev is not imported"),
    found(gpu_dev_disk="old", name="old", outcome="present", why="it was imported before"),
    found(gpu_dev_user="bob@x.org", user="bob@x.org", name=None, outcome="skipped",
          why='user "bob@x.org" is unknown to odc: name the owner with --user bob@x.org=NAME'),
    found(gpu_dev_user="carl", user="carl", gpu_dev_disk="", name=None, kind=None, cloud_id=None,
          size_gib=None, snapshot_count=0, last_used_at=None, outcome="skipped",
          why="no tag has the disk's name"),
)  # fmt: skip


def serve(peer: Peer, *answers: Object) -> None:
    peer.on("POST", PATH, Reply(an_import(state="wanted"), status=201))
    peer.on("GET", f"{PATH}/7", *answers)


def test_a_dry_run_shows_each_disk_and_the_reason_to_skip_it(
    peer: Peer, odcctl: Odcctl, golden: Golden
) -> None:
    serve(peer, an_import(*DISKS))
    done = odcctl("disk", "import")
    golden("disk-import", done.out + "--\n" + done.err)
    assert done.code == 0
    tags = {"user": "gpu-dev-user", "disk": "disk_name", "kind": "SnapshotType"}
    assert peer.requests_to(PATH)[0].body == {"apply": False, "owners": {}, "tags": tags}
    assert json.loads(odcctl("disk", "import", "--json").out) == an_import(*DISKS)
    assert odcctl("disk", "import", "--output", "quiet").out == "main\ndata-2\nold\n"


def test_apply_imports_them_for_the_owners_that_are_named(peer: Peer, odcctl: Odcctl) -> None:
    serve(peer, an_import(found(outcome="imported"), apply=True))
    done = odcctl(
        "disk", "import", "--apply", "--user", "ann@x.org=ann", "-u", "bob=robert",
        "--only", "ann@x.org", "--only", "bob", "--user-tag", "u", "--disk-tag", "d",
        "--kind-tag", "k",
    )  # fmt: skip
    assert done.err == (
        "odcctl: 1 disk imported, 0 imported before, 0 skipped; `odcctl disk list --user all` "
        "shows when they can be used\n"
    )
    assert peer.requests_to(PATH)[0].body == {
        "apply": True,
        "owners": {"ann@x.org": "ann", "bob": "robert"},
        "users": ["ann@x.org", "bob"],
        "tags": {"user": "u", "disk": "d", "kind": "k"},
    }


def test_an_account_without_gpu_dev_is_reported(peer: Peer, odcctl: Odcctl) -> None:
    serve(peer, an_import())
    assert odcctl("disk", "import").err == "odcctl: no volume or snapshot has gpu-dev's tags\n"


def test_it_waits_for_the_leader_and_gives_the_reason_when_it_stops(
    peer: Peer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client([Address(str(home / "odcd.sock"))], None)
    monkeypatch.setattr(disk_imports, "LOOK_S", 0.0)
    busy = an_import(state="wanted", trouble="AWS could not list volumes: no answer")
    serve(peer, busy, busy, an_import(found()))
    assert disk_imports.run_import(client, {}).json()["disks"] == [found()]
    monkeypatch.setattr(disk_imports, "WAIT_S", 0.0)
    serve(peer, busy)
    with pytest.raises(Failure) as stopped:
        disk_imports.run_import(client, {})
    assert "import 7 is not finished: AWS could not list volumes: no answer" in str(stopped.value)


def test_refusals_are_shown(peer: Peer, odcctl: Odcctl) -> None:
    refused = an_import(state="refused", trouble="AWS refused to list volumes: no right")
    serve(peer, refused)
    done = odcctl("disk", "import", "--apply")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("odcctl: disks not imported: AWS refused to list volumes: no right")
    peer.on(
        "POST", PATH, problem(403, "NotOwner", "OD013", "user bob may not import disks", "Ask.")
    )
    done = odcctl("disk", "import")
    assert done.err == (
        "odcctl: disks not imported: user bob may not import disks (OD013)\n  Ask.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "ann"], '--user is GPUDEV=NAME, not "ann"'),
        (["--user", "=ann"], "--user is GPUDEV=NAME"),
        (["--user", "ann="], "--user is GPUDEV=NAME"),
        (["--user", "a=b", "--user", "a=c"], "--user gives a two owners: b and c"),
        (["main"], "main"),
    ],
)
def test_wrong_usage_sends_no_request(
    peer: Peer, odcctl: Odcctl, arguments: list[str], message: str
) -> None:
    done = odcctl("disk", "import", *arguments)
    assert (done.code, peer.requests) == (2, [])
    assert message in done.err
