"""Cancels, pauses and continues workers, and proves the result; holds queues.

Doors: `cancelling`, `holding`, `pausing`.
"""
