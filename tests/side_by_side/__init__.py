"""Fairwave next to others: networks of namespaces, the tools that are measured in them, and the reports."""
