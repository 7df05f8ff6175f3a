"""A worker as its events and reports tell it: its status, its time at work, its end, its need of a person.

Doors: `ends`, `escalation`, `last_output`, `need`, `projection`, `removals`, `reports`, `sightings`, `tries`,
`worktime`.
"""
