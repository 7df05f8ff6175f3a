"""The queue and the places to run in, as they are on disk.

Doors: `tickets`, `places`, `queue_hold`.
"""
