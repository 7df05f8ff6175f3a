"""Who may start, who lives and how it ends, for shims and commands alike: standard library only."""
