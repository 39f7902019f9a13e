"""Event logs: the records of a trace (Runtime.start_trace with event_log_path), read from their file."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator

from gpushare import abi
from gpushare._handle import Handle, make
from gpushare._library import check, library
from gpushare._structs import init, text_of
from gpushare.records import Event


class EventLog(Handle):
    """The events of a file, in order of time. len(), indices and iteration work; close() frees the memory."""

    _release = 'gpushare_event_log_release'

    def __init__(self, path: str | os.PathLike[str]) -> None:
        count = ctypes.c_int64()
        name = text_of('path', path)

        def open_log(handle: object) -> int:
            status: int = library().gpushare_event_log_open(name, handle, ctypes.byref(count))
            return status

        super().__init__(make(open_log))
        self._count = count.value

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Event:
        if not -self._count <= index < self._count:
            raise IndexError(f'The log has {self._count} events, and the index is {index}.')
        struct = init(abi.gpushare_event)
        with self._use as handle:
            check(library().gpushare_event_log_get(handle, index % self._count, ctypes.byref(struct)))
        return Event.from_c(struct)

    def __iter__(self) -> Iterator[Event]:
        for index in range(self._count):
            yield self[index]
