"""All access to the operating system: files, locks, processes, YAML, time. It decides nothing."""
