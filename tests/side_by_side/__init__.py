"""Fairwave beside others: networks of namespaces, the tools that are measured in them, and what is told of them."""
