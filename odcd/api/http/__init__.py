"""What every resource of the API shares: routing, identity, errors, streaming, OpenAPI."""
