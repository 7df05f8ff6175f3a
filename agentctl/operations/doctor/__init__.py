"""What is wrong with a root or its machine, and what of that can safely be repaired.

Doors: `examining`, `gates`, `programs`.
"""
