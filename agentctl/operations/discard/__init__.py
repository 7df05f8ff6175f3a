"""Throwing away what has ended: workers are removed for good, tasks are put away, brought back or deleted.

Doors: `removing_workers`, `archiving`.
"""
