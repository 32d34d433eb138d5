"""odcctl, the command line of odc: it speaks HTTP to odcd and nothing else."""

try:
    from odcctl._version import __version__  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError:  # a checkout that was never installed; `make setup` writes the module
    __version__ = "0.0"

__all__ = ["__version__"]
