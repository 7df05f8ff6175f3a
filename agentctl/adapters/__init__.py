"""All access to the operating system: files, locks, processes, YAML, time. It knows formats, not their meaning."""
