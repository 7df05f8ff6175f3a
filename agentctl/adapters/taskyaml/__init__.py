"""task.yaml and config.yaml: what a person writes there, the roster, and a cache for code that reads no YAML.

Doors: `cache`, `roster`, `reader`, `writer`, `notifying`, `running`, `hosts`.
"""
