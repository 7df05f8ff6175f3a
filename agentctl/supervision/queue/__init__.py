"""The queue and the places to run in, as they lie on disk.

Doors: `tickets`, `places`.
"""
