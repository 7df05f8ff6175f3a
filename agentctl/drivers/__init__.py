"""One driver for each kind of agent program: all facts about how it is started, fed and read."""
