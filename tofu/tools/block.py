"""Print the entry of a capacity block for a var file.

Reads the output of `aws ec2 describe-capacity-reservations`.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TYPES = Path(__file__).parents[1] / "gpu-types.yaml"


def entry(answer: dict[str, Any], types: str) -> str:
    """types: the text of gpu-types.yaml. Raises ValueError if it is not a capacity block that can
    be used."""
    found = answer.get("CapacityReservations", [])
    if len(found) != 1:
        raise ValueError(f"expected one capacity reservation, got {len(found)}")
    block = found[0]
    if block.get("ReservationType") != "capacity-block":
        raise ValueError(f"{block['CapacityReservationId']} is no capacity block")
    rows = re.findall(r"^([a-z0-9-]+): \{.*instance_type: ([a-z0-9.-]+),", types, re.MULTILINE)
    names = [name for name, instance_type in rows if instance_type == block["InstanceType"]]
    if not names:
        raise ValueError(f"gpu-types.yaml has no type with {block['InstanceType']}: add a row")
    fields = {
        "type": names[0],
        "id": block["CapacityReservationId"],
        "zone": block["AvailabilityZone"],
        "instances": block["TotalInstanceCount"],
        "starts_at": _utc(block["StartDate"]),
        "ends_at": _utc(block["EndDate"]),
    }
    words = ", ".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())
    return f"{names[0]}-block = {{ {words} }}"


def _utc(text: str) -> str:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    try:
        print(entry(json.load(sys.stdin), TYPES.read_text(encoding="utf-8")))
    except ValueError as error:
        sys.exit(f"block: {error}")
