"""The version of the package: the one place where it stands."""

__version__ = "1.1.0"
