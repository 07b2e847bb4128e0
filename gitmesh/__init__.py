"""A module requires, and the mesh resolves."""

__version__ = "0.1.0"
