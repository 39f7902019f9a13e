"""Which GPU of a cluster gets which apps (docs/placement.md). It needs no runtime and starts nothing."""

from __future__ import annotations

import ctypes
import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpushare import abi
from gpushare._library import check, library
from gpushare._structs import Struct, init
from gpushare.enums import Status
from gpushare.errors import InvalidArgumentError
from gpushare.options import PlaceBe, PlaceGpu, PlaceLc, PlaceOptions, PlacePair
from gpushare.records import PlaceResult

if TYPE_CHECKING:
    from typing_extensions import Unpack

# The library refuses more replicas and instances. An array for them would only take memory.
_SLOTS_MAX = 2_000_000

# What a cluster's file requires. 0 would be an idle app, no memory, or no BE work.
_REQUIRED = {
    'gpus': ('name', 'memory_bytes'),
    'lc_apps': ('name', 'kind', 'load', 'memory_bytes'),
    'be_apps': ('name', 'kind', 'memory_bytes'),
    'pairs': ('lc', 'be', 'load', 'p99_ratio', 'be_rate'),
}


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where each replica and instance goes, and what that is worth."""

    # By app: the GPU of each of its replicas or instances; None: it has no GPU. Indices count the GPUs of all groups.
    gpus: dict[str, tuple[int | None, ...]]
    result: PlaceResult


def place(gpus: Sequence[PlaceGpu], lc_apps: Sequence[PlaceLc] = (), be_apps: Sequence[PlaceBe] = (),
          pairs: Sequence[PlacePair] = (), running: Mapping[str, Sequence[int | None]] | None = None,
          **options: Unpack[PlaceOptions]) -> Placement:
    """Places LC replicas and BE instances on GPUs, by what pairs of them do (gpushare_place).

    gpus, lc_apps, be_apps, pairs: dicts with the fields of the C structs, which are those of a cluster's file, and as
    many are required. A group without `count`, and an app without `replicas` or `instances`, has one.
    running: where each app runs now, such as `gpus` of the placement before. Entries beyond an app's number have left.
    Running apps keep their GPUs; at most moves_max BE instances change theirs, before new ones take a place. An entry
    of a running instance that becomes None has to stop.
    What finds no GPU is no error: its entry is None. Raises InvalidArgumentError for a value outside its range or a
    missing key.
    """
    groups = [init(abi.gpushare_place_gpu, _with_one(group, 'count')) for group in gpus]
    lc = [init(abi.gpushare_place_lc, _with_one(app, 'replicas')) for app in lc_apps]
    be = [init(abi.gpushare_place_be, _with_one(app, 'instances')) for app in be_apps]
    rows = [init(abi.gpushare_place_pair, pair) for pair in pairs]
    for name, given in (('gpus', gpus), ('lc_apps', lc_apps), ('be_apps', be_apps), ('pairs', pairs)):
        _require(name, given)
    apps = [(_text(struct.name), int(struct.replicas)) for struct in lc]
    apps += [(_text(struct.name), int(struct.instances)) for struct in be]
    slots = sum(max(0, count) for _, count in apps)
    if slots > _SLOTS_MAX:
        slots, running = 0, None  # the library counts them first, and says what is too many
    out = (ctypes.c_int32 * slots)()
    runs = None if running is None else (ctypes.c_int32 * slots)(*_slots(apps, running))
    result = abi.init(abi.gpushare_place_result)
    struct = init(abi.gpushare_place_options, options)
    check(library().gpushare_place(
        ctypes.byref(struct), *_array(abi.gpushare_place_gpu, groups), *_array(abi.gpushare_place_lc, lc),
        *_array(abi.gpushare_place_be, be), *_array(abi.gpushare_place_pair, rows), runs, out, slots,
        ctypes.byref(result)))
    placed: dict[str, tuple[int | None, ...]] = {}
    first = 0
    for name, count in apps:
        placed[name] = tuple(None if gpu == abi.GPUSHARE_NO_GPU else gpu for gpu in out[first:first + count])
        first += count
    return Placement(placed, PlaceResult.from_c(result))


def _require(name: str, given: Sequence[Mapping[str, Any]]) -> None:
    for i, values in enumerate(given):
        for key in _REQUIRED[name]:
            if values.get(key) is None:
                raise InvalidArgumentError(
                    Status.INVALID_ARGUMENT, f"{name}[{i}] has no '{key}', and it must be given.")


def _text(name: bytes | None) -> str:
    # The library refuses a name that is not UTF-8.
    return (name or b'').decode(errors='replace')


def _array(kind: type[Struct], structs: Sequence[Struct]) -> tuple[ctypes.Array[Struct], int]:
    """The structs side by side. They keep the strings that their copies point to."""
    return (kind * len(structs))(*structs), len(structs)


def _with_one(values: Mapping[str, Any], count: str) -> Mapping[str, Any]:
    return values if values.get(count) is not None else {**values, count: 1}


def _slots(apps: Sequence[tuple[str, int]], running: Mapping[str, Sequence[int | None]]) -> Iterator[int]:
    """The GPU that each replica and instance runs on."""
    unknown = set(running).difference(name for name, _ in apps)
    if unknown:
        raise InvalidArgumentError(
            Status.INVALID_ARGUMENT, f"running has '{min(unknown)}', and there is no such app; one that leaves has 0 "
            'replicas or instances.')
    for name, count in apps:
        given = running.get(name, ())[:max(0, count)]
        for gpu in given:
            number = abi.GPUSHARE_NO_GPU if gpu is None else operator.index(gpu)
            if gpu is not None and not 0 <= number < 2**31:
                raise InvalidArgumentError(
                    Status.INVALID_ARGUMENT, f"running has GPU {number} for app '{name}', and a GPU is an index "
                    'from 0, or None.')
            yield number
        yield from [abi.GPUSHARE_NO_GPU] * (count - len(given))
