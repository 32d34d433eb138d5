"""A login at a daemon as in production: started by root, which has dropped root before the first
request."""

from __future__ import annotations

import json

import pytest
from botocore.credentials import Credentials

from tests.support.fakes.sts import ROLE, serving_sts
from tests.support.harness.controlplane.children import free_port
from tests.support.harness.daemon import Odc
from tests.support.harness.users import needs_root


@pytest.mark.long
@needs_root
def test_users_log_in_to_a_daemon_with_their_aws_credentials(odc: Odc) -> None:
    """AUT-01 to AUT-07, CLI-47."""
    url = f"http://127.0.0.1:{free_port()}"
    with serving_sts() as sts:
        ann, eve = sts.add("ann"), sts.add("eve", role="Other")
        trusted = sts.write_ca(odc.home.parent / "ca.pem")
        trusted.chmod(0o644)
        settings = {
            "SSL_CERT_FILE": str(trusted), "ODC_STS_ENDPOINT": sts.url, "ODC_URL": url,
            "ODC_AWS_ROLES": ROLE,
        }  # fmt: skip
        odc.environment |= settings
        odc.up("--listen", url.removeprefix("http://"), "--node", "n1=h100:8")
        for name in settings:
            del odc.environment[name]
        odc.environment |= {
            "ODC_SERVER": url, "HOME": str(odc.home.parent), "AWS_ENDPOINT_URL_STS": sts.url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip

        def be(who: Credentials) -> None:
            odc.environment |= {
                "AWS_ACCESS_KEY_ID": who.access_key,
                "AWS_SECRET_ACCESS_KEY": who.secret_key,
                "AWS_SESSION_TOKEN": str(who.token),
            }

        be(ann)
        odc.odcctl("nodes")
        job = odc.odcctl("submit", "--hold", "--wrap", "true", "--parsable").stdout.strip()
        mine = odc.odcctl("queue", "--me", "--json").stdout
        [shown] = json.loads(mine)["jobs"]
        assert (str(shown["id"]), shown["user"]) == (job, "ann")
        odc.odcctl("logout")
        be(eve)
        refused = odc.odcctl("login", check=False)
        assert refused.returncode == 1
        assert "role/Other is not allowed to log in (OD033)" in refused.stderr
        log = (odc.home / "odcd.log").read_text()
        assert "login.done" in log
        assert "login.refused" in log
        assert "Traceback" not in log
        for secret in (ann.secret_key, str(ann.token), "X-Amz-Signature"):
            assert secret not in log
