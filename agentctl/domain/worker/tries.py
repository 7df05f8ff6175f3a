"""Which workers of a task do the same work: the first one, and those that try it again or go on with it.

A work has the name of its first worker. `NAME` means its newest try; `NAME@1` is the first one.
"""

from __future__ import annotations


class Tries:
    """The works of a task that have more than one try."""

    def __init__(self) -> None:
        #: work -> its workers, in the order in which they were accepted.
        self._tries: dict[str, list[str]] = {}
        self._works: dict[str, str] = {}

    def add(self, instance: str, before: str) -> str:
        """Note that a worker does the work of another one; return the newest that did it until now.

        >>> tries = Tries()
        >>> tries.add("build-2", "build"), tries.add("build-3", "build"), tries.newest("build")
        ('build', 'build-2', 'build-3')
        """
        work = self.work_of(before)
        tries = self._tries.setdefault(work, [work])
        newest = tries[-1]
        tries.append(instance)
        self._works[instance] = work
        return newest

    def remove(self, instance: str) -> list[str]:
        """Forget a worker; return those that are left of its work, of which the first one now names it.

        >>> tries = Tries()
        >>> _ = tries.add("build-2", "build"), tries.add("build-3", "build")
        >>> tries.remove("build"), tries.work_of("build-3")
        (['build-2', 'build-3'], 'build-2')
        """
        work = self.work_of(instance)
        tries = self._tries.pop(work, [])
        left = [one for one in tries if one != instance]
        for one in tries:
            self._works.pop(one, None)
        if len(left) > 1:
            self._tries[left[0]] = left
            self._works.update((one, left[0]) for one in left[1:])
        return left

    def work_of(self, instance: str) -> str:
        """Return the work of a worker."""
        return self._works.get(instance, instance)

    def of_work(self, work: str) -> list[str]:
        """Return the workers of a work, oldest first."""
        return self._tries.get(work, [work])

    def newest(self, work: str) -> str:
        """Return the newest worker of a work; of another worker itself."""
        return self.of_work(work)[-1]
