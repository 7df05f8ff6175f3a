"""The pure core: what the terms mean, and what follows from the events. No I/O, no clock."""
