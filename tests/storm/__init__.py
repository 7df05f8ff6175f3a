"""A storm: workers, agents and onlookers of one root, while disk, clock, package, pids and processes fail by chance.

`python -m tests.storm --seed 7 --seconds 60` is one of it, in the current environment and folder.
`tests/soak/test_storm.py` gives it those, and pids of its own.
"""
