"""The record of finished shards. States are merged in the order of shard numbers, in whatever order they arrive.

Float addition is not associative; with a fixed order, one worker, several workers and a resumed run agree to the last
bit. A shard that arrives early waits, also on disk, until those before it have arrived.
"""

from __future__ import annotations

from collections.abc import Mapping

from headscope.core.state import State, States
from headscope.results.folder import Folder


class Ledger:
    """The merged states of shards 0 to `next` - 1, and the waiting states of later shards."""

    def __init__(self, folder: Folder | None, key: str, resume: bool = False) -> None:
        self._folder = folder
        self._key = key
        self.merged: States | None = None
        self.next = 0
        self._waiting: dict[int, States] = {}
        for (first, last), states in folder.read_parts(key).items() if folder is not None and resume else ():
            if first == 0:
                self.merged, self.next = states, last + 1
            else:
                self._waiting[first] = states
        self.resumed = self.next + len(self._waiting)

    def done(self, shard: int) -> bool:
        """Whether a shard is finished."""
        return shard < self.next or shard in self._waiting

    def add(self, shard: int, states: States) -> None:
        """Add a finished shard, and save it to disk before returning."""
        self._waiting[shard] = states
        if shard != self.next:
            if self._folder is not None:
                self._folder.write_part(shard, shard, states, self._key)
            return
        while self.next in self._waiting:
            ready = self._waiting.pop(self.next)
            self.merged = ready if self.merged is None else merge(self.merged, ready)
            self.next += 1
        if self._folder is not None and self.merged is not None:
            self._folder.write_part(0, self.next - 1, self.merged, self._key)


def merge(left: Mapping[str, State], right: Mapping[str, State]) -> States:
    """The states of all measures, merged pair by pair."""
    return {name: state.merge(right[name]) for name, state in left.items()}
