"""What touches the operating system: files, locks, processes, YAML, time. Knows nothing of meaning."""
