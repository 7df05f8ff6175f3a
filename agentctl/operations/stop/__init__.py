"""Cancels, pauses and continues workers, and proves the result.

Doors: `cancelling`, `pausing`.
"""
