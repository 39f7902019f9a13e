"""Fills options structs from keyword arguments and reads text, with the checks that ctypes leaves out.

ctypes silently drops the high bits of an integer that does not fit, and C ends a string at its first NUL. Here both
raise InvalidArgumentError.
"""

from __future__ import annotations

import ctypes
import difflib
import functools
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpushare import abi
from gpushare._library import check
from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError

Struct = TypeVar('Struct', bound=ctypes.Structure)

_INTEGERS: dict[Any, tuple[int, int]] = {
    ctypes.c_int32: (-2**31, 2**31 - 1),
    ctypes.c_uint32: (0, 2**32 - 1),
    ctypes.c_int64: (-2**63, 2**63 - 1),
    ctypes.c_uint64: (0, 2**64 - 1),
}


@functools.cache
def _field_types(kind: type[ctypes.Structure]) -> dict[str, Any]:
    return {field[0]: field[1] for field in kind._fields_}


def init(kind: type[Struct], values: Mapping[str, Any] | None = None) -> Struct:
    """A struct with struct_size and the given fields set; every other field is zero. None counts as not given."""
    struct = abi.init(kind)
    types = _field_types(kind)
    for name, value in (values or {}).items():
        if name not in types or name == 'struct_size':
            raise TypeError(f"There is no option '{name}'{_instead(name, types)}")
        if value is not None:
            setattr(struct, name, _converted(kind, name, types[name], value))
    return struct


def _instead(name: str, types: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, [known for known in types if known != 'struct_size'], 1)
    return f"; did you mean '{close[0]}'?" if close else '.'


def _converted(kind: type[ctypes.Structure], name: str, field_type: Any, value: Any) -> Any:
    if field_type is ctypes.c_char_p:
        return text_of(name, value)
    if field_type in _INTEGERS:
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(f'{name} is {value!r}, and it must be an integer.') from None
        least, most = _INTEGERS[field_type]
        if not least <= number <= most:
            raise InvalidArgumentError(
                Status.INVALID_ARGUMENT, f'{kind.__name__}.{name} is {number}, and it must be from {least} to {most}.')
        return number
    if field_type is ctypes.c_double:
        return float_of(name, value)
    return value


def float_of(name: str, value: Any) -> float:
    """A value that C gets as double. A text is refused: float() would read it, and a typo would pass."""
    if not isinstance(value, str | bytes | bytearray):
        try:
            return float(value)
        except TypeError:
            pass
    raise TypeError(f'{name} is {value!r}, and it must be a number.')


def int64_of(name: str, value: Any) -> int:
    """A value that C gets as int64_t."""
    number: int = _converted(abi.gpushare_task_options, name, ctypes.c_int64, value)
    return number


def text_of(name: str, value: str | bytes | os.PathLike[str]) -> bytes:
    """A string as C gets it."""
    try:
        path = os.fspath(value)
    except TypeError:
        raise TypeError(f'{name} is {value!r}, and it must be a string or a path.') from None
    encoded = path if isinstance(path, bytes) else path.encode()
    if b'\0' in encoded:
        raise InvalidArgumentError(Status.INVALID_ARGUMENT, f'{name} is {path!r}, and it must not contain a NUL.')
    return encoded


def bytes_of(name: str, value: Any) -> bytes:
    """Bytes that C gets as they are."""
    if not isinstance(value, bytes):
        raise TypeError(f'{name} is {value!r}, and it must be bytes.')
    return value


def read_text(write: Callable[..., int]) -> str:
    """The text that a function of the C ABI writes into a buffer. Repeats the call when the text grew meanwhile."""
    size = ctypes.c_size_t()
    check(write(None, 0, ctypes.byref(size)))
    while True:
        buffer = ctypes.create_string_buffer(size.value + 256)
        status = write(buffer, len(buffer), ctypes.byref(size))
        if status != Status.OUT_OF_RANGE:
            check(status)
            return buffer.value.decode('utf-8', 'replace')
