"""Which agents and templates may be used, and how a person allows it by `trust`.

Doors: `definitions`, `templates`, `trusting`.
"""
