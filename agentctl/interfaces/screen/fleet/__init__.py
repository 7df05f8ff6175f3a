"""The list of workers: which lines it has, how each is drawn, and what a filter lets through.

Doors: `fleet_list`, `lines`, `drawing`, `filtering`.
"""
