"""Which agents and templates may be used, and a person's word that they may.

Doors: `definitions`, `templates`, `trusting`.
"""
