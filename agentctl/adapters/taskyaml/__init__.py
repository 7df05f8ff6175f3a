"""task.yaml: its head as a person writes it, the roster below, and a cache of the head for code that reads no YAML.

Doors: `cache`, `roster`, `reader`, `writer`, `notifying`, `running`, `hosts`.
"""
