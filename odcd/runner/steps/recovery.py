"""Take over the steps of an earlier runner, whether they ended or live on below their
supervisors."""

from __future__ import annotations

import os
import time

from odcd.runner import record
from odcd.runner.loop import Loop
from odcd.runner.record import Key
from odcd.runner.steps.book import Steps
from odcd.runner.steps.step import Step

LOOK_AGAIN_S = 0.25
RESTARTED = {"e": "lost", "detail": "the machine was restarted while the step ran"}


def recover(steps: Steps, loop: Loop, *, same_boot: bool) -> None:
    for name in sorted(os.listdir(steps.folder)):
        key = Key.parse(name)
        if key is None:
            continue
        path = steps.path_of(key)
        regions = record.read_file(path)
        intent = regions["intent"]
        if intent is None:
            # It never began: the intent is complete before anything else happens.
            path.unlink()
            continue
        step = Step(key, intent["uid"], intent["mark"], intent["cgroups"])
        steps.add(step)
        if regions["exit"] is not None:
            steps.settle(step, regions["exit"])
        elif not same_boot:
            steps.end_orphans(step, RESTARTED)
        elif record.is_held(path):
            _take_over(steps, loop, step)
        else:
            steps.ended(step)


def _take_over(steps: Steps, loop: Loop, step: Step) -> None:
    """Watch a living supervisor, once its record names it."""
    path = steps.path_of(step.key)
    begun = record.read_file(path)["begun"]
    if begun is not None:
        step.pid = begun["shim"]
        steps.follow(step)
    elif record.is_held(path):
        loop.at(time.time() + LOOK_AGAIN_S, lambda: _take_over(steps, loop, step))
    else:
        steps.ended(step)
