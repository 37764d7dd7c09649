"""Measurements of the running command that need a calm machine: `make live`."""
