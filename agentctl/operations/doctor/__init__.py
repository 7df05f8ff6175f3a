"""What is wrong with a root or its machine, and the repair of what is safe to repair.

Doors: `examining`, `gates`, `programs`.
"""
