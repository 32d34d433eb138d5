"""odcctl disk and reserve --disk, as a user types them: a daemon, a real API server, and a
simulated AWS."""

from __future__ import annotations

import pytest

from tests.kubernetes.test_disks import DiskSite, moto_port, open_folder, site
from tests.support.harness.daemon import wait

__all__ = ["moto_port", "open_folder", "site"]

pytestmark = pytest.mark.long
ASKED = ("-t", "h100", "-g", "1", "-h", "1", "--github-user", "alice", "--no-wait")


def reserve(site: DiskSite, *options: str) -> int:
    return int(site.stack("reserve", *ASKED, *options, "--output", "quiet"))


def row(site: DiskSite, name: str) -> str:
    lines = site.stack("disk", "list").splitlines()
    return next(" ".join(line.split()) for line in lines if line.startswith(f"{name} "))


def test_a_user_manages_a_disk_from_the_command_line(site: DiskSite) -> None:
    """CLI-08, CLI-36 to CLI-40, STO-03, STO-04, STO-06, STO-18: from creation to deletion."""
    stack = site.stack
    assert stack("disk", "create", "main") == "disk main created: 10 GiB\n"
    assert row(site, "main").startswith("main -/10 GiB available 0 ")
    refused = stack("reserve", *ASKED, "--disk", "other", check=False)
    assert 'you have no disk "other" (OD036)' in refused

    first = reserve(site, "--disk", "main", "--recreate-env")
    pod = site.pod(first)
    site.run(pod)
    site.until(first, "active")
    assert row(site, "main").startswith(f"main -/10 GiB in-use by {first} 0 ")
    assert "storage:   disk main\n" in stack("show", str(first))
    refusal = stack("reserve", *ASKED, "--disk", "main", check=False)
    busy = f'it waits (DiskBusy): disk "main" is in use by reservation {first}'
    assert busy in refusal
    [second] = [one for one in stack.json("list")["reservations"] if one["id"] != first]
    assert "main (busy)" in stack("list")
    assert "is using it" in stack("disk", "rename", "main", "home", check=False)

    site.aws.ebs.pending_polls = float("inf")
    stack("cancel", str(first))
    wait(lambda: "backing-up" in row(site, "main"), lambda: f"{row(site, 'main')}{stack.log()}")
    site.until_matches(second["id"], lambda one: "SnapshotPending" in one["message"])
    stack("cancel", str(second["id"]))
    site.aws.ebs.pending_polls = 0
    site.aws.ebs.release()
    site.until_disk("available")
    site.settled()
    assert site.show(first)["disk_state"] == "saved"
    assert site.show(second["id"])["disk_state"] == "unused"

    assert stack("disk", "list-content", "main") == "not available\n"
    assert stack("disk", "rename", "main", "home") == "disk main renamed to home\n"
    assert row(site, "home").startswith("home -/10 GiB available 1 ")
    assert "disk home deleted: its 1 snapshot will be kept" in stack("disk", "delete", "home", "-y")
    assert " deleted until 20" in row(site, "home")
    refused = stack("reserve", *ASKED, "--disk", "home", check=False)
    assert 'disk "home" was deleted (OD037)' in refused


def test_an_operator_unlocks_and_clones_from_the_command_line(site: DiskSite) -> None:
    """CLI-41, AUT-09."""
    site.create()
    job_id, pod = site.with_disk()
    (site.home(pod) / "work").write_text("done")
    site.stack("cancel", str(job_id))
    site.until_disk("available")
    site.settled()
    site.stack.sql("update odc.disk set trouble = 'an unknown volume', trouble_at = now()")
    listed = site.stack("disk", "list", check=False)
    assert " trouble " in listed
    assert "odcctl: disk main: an unknown volume\n" in listed
    assert "an unknown volume" in site.stack("reserve", *ASKED, "--disk", "main", check=False)
    whose = site.disk()["user"]
    assert "may not unlock disks" in site.stack("disk", "unlock", "main", check=False)
    own = site.stack.odc.environment["ODC_TOKEN"]
    root = site.stack.odc.odcd("token", "root", "--dsn", site.stack.dsn).stdout.strip()
    site.stack.odc.environment["ODC_TOKEN"] = root
    assert "can be used again" in site.stack("disk", "unlock", "main", "--user", whose)
    assert "copy of" in site.stack("disk", "clone", "main", "copy", "--user", whose)
    site.stack.odc.environment["ODC_TOKEN"] = own
    pod = site.pod(reserve(site, "--disk", "copy"))
    assert (site.home(pod) / "work").read_text() == "done"
