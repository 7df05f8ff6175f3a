"""Which agents, templates and settings of a root may be used, and how a person allows it by `trust`.

Doors: `definitions`, `driver_choices`, `root_settings`, `templates`, `trusting`.
"""
