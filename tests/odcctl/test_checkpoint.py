"""checkpoint knows which job it is in."""

from __future__ import annotations

from tests.odcctl.conftest import Odcctl
from tests.odcctl.objects import outcome
from tests.odcctl.peer import Peer


def test_a_job_tells_of_its_own_checkpoint(peer: Peer, odcctl: Odcctl) -> None:
    answer = {"jobs": [outcome(7, "checkpointed")]}
    peer.on("POST", "/v1/jobs/7/checkpoint", answer)
    done = odcctl("checkpoint", ODC_JOB_ID="7")
    assert (done.code, done.out, done.err) == (0, "job 7 checkpointed\n", "")
    assert peer.requests[0].path == "/v1/jobs/7/checkpoint"


def test_an_id_goes_before_the_job_it_is_called_in(peer: Peer, odcctl: Odcctl) -> None:
    peer.on("POST", "/v1/jobs/8_3/checkpoint", {"jobs": [outcome(9, "checkpointed")]})
    assert odcctl("checkpoint", "8_3", ODC_JOB_ID="7").out == "job 9 checkpointed\n"


def test_checkpoint_outside_a_job_needs_an_id(peer: Peer, odcctl: Odcctl) -> None:
    done = odcctl("checkpoint")
    assert (done.code, done.out) == (2, "")
    assert "ID" in done.err
