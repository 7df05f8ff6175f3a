"""What the sources over a file of lines have in common: they read on, and begin anew where it was replaced."""

from __future__ import annotations

from agentctl.adapters.files import AnyPath
from agentctl.interfaces.screen.texts.source_file import LineBlock, LineBlocks, SourceFile


class LineSource:
    """A text that is made from the lines of a file, of which some are shown.

    Args:
        path: The file.
        most: How many paragraphs are shown.
        what: What the paragraphs are, with the command that prints all of them.
    """

    def __init__(self, path: AnyPath, most: int, what: str) -> None:
        self.paths: tuple[AnyPath, ...] = (path,)
        self.generation = 0
        self._file = SourceFile(path)
        self._most, self._what = most, what
        self._begin()

    def _begin(self) -> None:
        """Forget what was read."""
        self.problem: str | None = None
        self._blocks = LineBlocks(self._file)

    def _take(self, block: LineBlock) -> None:
        """Remember what is shown of some lines."""
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def grow(self) -> bool:
        """Read on; return whether there is more to read at once."""
        if self._file.is_replaced(self._blocks.offset):
            self._begin()
            self.generation += 1
        if len(self) >= self._most:
            self.problem = f"only the first {self._most:,} {self._what}"
            return False
        block = self._blocks.next()
        if block is not None:
            self._take(block)
        return block is not None

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
