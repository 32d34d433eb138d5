"""odcctl, the daemon's API and an STS that verifies signatures, together."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.odcd.api.service import on_socket
from tests.odcd.login.house import House, live
from tests.support.fakes.sts import Sts
from tests.support.harness.served import free_port


@pytest.mark.long
def test_a_user_with_aws_credentials_needs_no_other_setup(
    database_url: str, sts: Sts, folder: Path, tmp_path: Path
) -> None:
    """CLI-47, AUT-01, AUT-02: credentials and a server are enough."""
    ann = sts.add("ann")
    url = f"http://127.0.0.1:{free_port()}"
    config = tmp_path / ".config" / "odcctl"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f'server = "{url}"\n')
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "TZ": "UTC",
        "AWS_ACCESS_KEY_ID": ann.access_key, "AWS_SECRET_ACCESS_KEY": ann.secret_key,
        "AWS_SESSION_TOKEN": str(ann.token), "AWS_ENDPOINT_URL_STS": sts.url,
    }  # fmt: skip

    def odcctl(*argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "odcctl", *argv], env={**environment, **more}, text=True,
            capture_output=True, timeout=120, cwd=Path.cwd(), check=False,
        )  # fmt: skip

    async def work(house: House) -> None:
        port = int(url.rpartition(":")[2])
        async with on_socket(house.service, folder / "s", listen=("127.0.0.1", port)):
            done = await asyncio.to_thread(odcctl, "submit", "--parsable", "--wrap", "true")
            assert (done.returncode, done.stderr) == (0, "")
            job_id = done.stdout.strip()
            done = await asyncio.to_thread(odcctl, "queue", "--me", "--output", "quiet")
            assert done.stdout == f"{job_id}\n"
            assert len(await house.audit_events("login")) == 1
            await house.service.database.execute("update odc.api_key set active = false")
            done = await asyncio.to_thread(odcctl, "cancel", job_id)
            assert done.returncode == 0, done.stderr
            assert len(await house.audit_events("login")) == 2
            wrong = {"ODC_SERVER_ID": "http://other.example:80"}
            done = await asyncio.to_thread(lambda: odcctl("login", **wrong))
            assert "signed for another server" in done.stderr
            assert url in done.stderr
            done = await asyncio.to_thread(odcctl, "logout")
            assert (done.returncode, done.stdout) == (0, f"logged out of {url}\n")
            done = await asyncio.to_thread(odcctl, "queue")
            assert done.returncode == 1
            assert "Log in with `odcctl login`" in done.stderr
            # A region whose endpoint is not the one that this server calls.
            del environment["AWS_ENDPOINT_URL_STS"]
            done = await asyncio.to_thread(odcctl, "login")
            assert f"another host than {sts.authority}" in done.stderr

    live(database_url, sts, work, environment={"ODC_URL": url})
