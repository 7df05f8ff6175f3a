"""The commands of a worker on a node, which are carried out at the head.

Doors: `called_commands`, `called_files`, `head_call`.
"""
