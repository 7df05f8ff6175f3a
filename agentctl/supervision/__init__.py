"""Which workers may start, which live and how they end, for shims and commands alike: standard library only."""
