"""A registry that denies an image for a moment does not fail a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odcd.executor.kubernetes.image_pulls import Denials, is_denied, is_missing
from odcd.executor.kubernetes.objects import Pod

A, B = (7, 1, 0), (7, 1, 1)
DENIED = 'failed to pull "x:1": unexpected status from HEAD request: 403 Forbidden'


def a_pod(message: str, reason: str = "ErrImagePull", node: str = "n1", image: str = "x:1") -> Pod:
    state: dict[str, Any] = {"waiting": {"reason": reason, "message": message}}
    return msgspec.convert(
        {
            "spec": {"nodeName": node, "containers": [{"name": "job", "image": image}]},
            "status": {"containerStatuses": [{"name": "job", "state": state}]},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("message", "missing", "denied"),
    [
        ("x:1: not found", True, False),
        ("manifest unknown", True, False),
        ("unexpected status from HEAD request: 404 Not Found", True, False),
        (DENIED, False, True),
        ("failed to authorize: 401 Unauthorized", False, True),
        ("pull access denied, repository does not exist or may require authorization", False, True),
        ("unexpected status: 503 Service Unavailable", False, False),
        ("dial tcp: i/o timeout", False, False),
    ],
)
def test_only_a_missing_image_is_hopeless_at_once(
    message: str, missing: bool, denied: bool
) -> None:
    assert is_missing("ErrImagePull", message) == missing
    assert is_denied("ErrImagePull", message) == denied


def test_a_denied_image_is_given_up_if_the_denial_persists() -> None:
    denials = Denials(90)
    denials.note(a_pod(DENIED), A, 0)
    denials.note(a_pod("Back-off pulling image", "ImagePullBackOff"), A, 50)
    assert not denials.persists(A, 89)
    assert denials.persists(A, 90)


@pytest.mark.parametrize(
    "then",
    [a_pod("503 Service Unavailable"), a_pod("", "ContainerCreating")],
    ids=["5xx", "pulled"],
)
def test_another_answer_of_the_registry_ends_the_denial(then: Pod) -> None:
    denials = Denials(90)
    denials.note(a_pod(DENIED), A, 0)
    denials.note(then, A, 40)
    denials.note(a_pod(DENIED), A, 50)
    assert not denials.persists(A, 100)


@pytest.mark.parametrize(
    ("node", "image", "confirmed"), [("n2", "x:1", True), ("n1", "x:1", False), ("n2", "y", False)]
)
def test_two_nodes_confirm_a_denial_of_the_same_image(
    node: str, image: str, confirmed: bool
) -> None:
    denials = Denials(90)
    denials.note(a_pod(DENIED), A, 0)
    denials.note(a_pod(DENIED, node=node, image=image), B, 0)
    assert not denials.persists(A, 14), "each node tries at least twice"
    assert denials.persists(A, 15) == confirmed
