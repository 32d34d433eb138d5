"""Shared by all resources of the API: routing, identity, errors, streaming, OpenAPI."""
