"""The screen of `agentctl watch`: what runs, who needs a person, and one key to answer. Needs the extra `tui`."""
