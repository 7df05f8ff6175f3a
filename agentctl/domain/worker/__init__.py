"""A worker: the fold of its events, its ends, and how much it needs a person.

Doors: `ends`, `escalation`, `need`, `projection`, `reports`, `sightings`, `worktime`.
"""
