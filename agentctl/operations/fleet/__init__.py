"""Decides what a person sees of all tasks of a root at once, and in which order; starts nothing.

Doors: `fleet`, `glance`, `seen`, `reader`, `event_stream`.
"""
