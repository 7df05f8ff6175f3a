"""How each kind of agent program is started, fed and read: one file for each, which has all facts about it."""
