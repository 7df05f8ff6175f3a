"""The files that a host reads and writes while its agent works, none of which may be lost.

Doors: `full_disk`, `idle_place`, `inbox_reader`, `outbox_reader`, `recorder`.
"""
