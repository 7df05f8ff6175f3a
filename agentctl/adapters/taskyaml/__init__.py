"""task.yaml: its head as a person writes it, the roster below, and what of it is kept for programs that read no YAML.

Doors: `cache`, `roster`, `reader`, `writer`.
"""
