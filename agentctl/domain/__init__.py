"""Pure: what the words mean and what follows from the events. No I/O, no clock."""
