"""The small process between the command line and a worker: outlives the one, records the end of the other."""
