"""moto's server with an index: by itself it looks through all tags of all that it keeps whenever it
needs those of one volume, matches each volume with each id asked for, and lists what it can do at
each request. What it answers stays the same."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from moto.core import responses
from moto.ec2.models import elastic_block_store
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix, is_filter_matching
from moto.server import main

PATTERN = frozenset("*?[")
"""Characters that make a word a pattern for moto."""


def tags_of(self: Any) -> list[dict[str, str]]:
    if not self.id:
        return []
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
    return [
        {"resource_id": self.id, "key": key, "value": value, "resource_type": kind}
        for key, value in self.ec2_backend.tags.get(self.id, {}).items()
    ]


def filtered(filters: Mapping[str, Any] | None, there: Sequence[Any]) -> list[Any]:
    """The same result as moto's own function, which handles everything but plain words."""
    for name, values in (filters or {}).items():
        plain = isinstance(values, list) and PATTERN.isdisjoint("".join(values))
        plain_values = frozenset[str](values) if plain else frozenset[str]()

        def matches(
            one: Any, name: str = name, values: Any = values, plain_values: Any = plain_values
        ) -> bool:
            value = one.get_filter_value(name) if plain_values else None
            return (
                value in plain_values
                if isinstance(value, str)
                else is_filter_matching(one, name, values)
            )

        there = [one for one in there if matches(one)]
    return list(there)


TaggedEC2Resource.get_tags = tags_of
elastic_block_store.generic_filter = filtered
responses.method_names_from_class = functools.cache(responses.method_names_from_class)

if __name__ == "__main__":
    main(sys.argv[1:])
