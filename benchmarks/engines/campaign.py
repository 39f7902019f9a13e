#!/usr/bin/env python3
"""The rows of an engine beside jobs that one call on a machine has time for, in order of their weight, and one table.

  campaign.py [--items main,other_ways,loads,mps,mps_50,mps_low,transformers,8b,endurance] [--limit-s 570] --out FOLDER
  campaign.py --items forms,forms_engine --limit-s 300 --out FOLDER

Each item runs engines.py, services.py, transformers_engine.py or endurance.py in its own process, with the time that
is left as its limit. An item that needs more time is left out, and the table says so. Items of MPS start its daemon and
end it again. The items forms, forms_engine and forms_resnet run only where they are named.
FOLDER gets the JSON of each item and `campaign.json`, which says how each of them ended.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))

import forms
from mps import NoMpsError, mps
from timing import table

FOLDER = pathlib.Path(__file__).resolve().parent
FOUR, THREE = 'lora,gpt2c,vit,eager', 'lora,gpt2c,vit'
FORMS = '--forms cublas,segments,twins --promises 1.02,1.05'
OURS = 'bare,library,library:1.05,library:1.20'
END_S = 20.0  # of a child beyond its limit, after which it is ended


@dataclasses.dataclass(frozen=True)
class Item:
    """What runs: the program and its options; the least and the most time that it gets."""

    name: str
    command: str
    least_s: float
    most_s: float
    under_mps: bool = False
    on_request: bool = False  # only if it is named


ITEMS = (
    Item('main', f'engines.py --jobs {FOUR} --conditions {OURS} --seconds 6 --rounds 2', 120, 240),
    Item('other_ways', f'engines.py --jobs {THREE} --conditions bare,query:1.05,streams,priority,gated,stopped,process '
         '--seconds 4 --rounds 2', 120, 240),
    Item('loads', f'engines.py --jobs {THREE} --conditions {OURS} --load 0.3,0.7,0.5 --requests azure,poisson '
         '--seconds 4 --rounds 1', 120, 260),
    Item('mps', f'engines.py --jobs {THREE} --conditions bare,process --seconds 4 --rounds 2', 80, 130, True),
    Item('mps_50', f'engines.py --jobs {THREE} --conditions bare,process --seconds 4 --rounds 2 '
         '--process-env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50', 80, 130, True),
    Item('mps_low', f'engines.py --jobs {THREE} --conditions bare,process --seconds 4 --rounds 2 '
         '--process-env CUDA_MPS_CLIENT_PRIORITY=1', 80, 130, True),
    Item('transformers', f'transformers_engine.py --jobs {FOUR} --conditions {OURS},streams --seconds 5 --rounds 2',
         150, 330),
    Item('8b', f'engines.py --model 8b --jobs {FOUR} --conditions {OURS} --seconds 6 --rounds 2', 150, 300),
    Item('endurance', 'endurance.py --jobs lora,vit', 200, 570),
    # In front of forms_engine: what it compiles is in TorchInductor's cache then.
    Item('forms', f'services.py {FORMS} --steps gpt2 --services bert_b1,dlrm_b256,decode_b16 --rounds 1 --queries 1200',
         120, 190, on_request=True),
    Item('forms_engine', 'engines.py --jobs gpt2_cublas,gpt2_segments,gpt2_twins --conditions '
         'bare,library:1.02,library:1.05 --seconds 4 --rounds 1', 80, 210, on_request=True),
    Item('forms_resnet', f'services.py {FORMS} --steps resnet50 --services bert_b1,dlrm_b256,decode_b16 --rounds 1 '
         '--queries 1200', 150, 290, on_request=True),
)
DEFAULT = ','.join(item.name for item in ITEMS if not item.on_request)


def chosen(words: str) -> list[Item]:
    by_name = {item.name: item for item in ITEMS}
    for word in words.split(','):
        if word not in by_name:
            raise ValueError(f"'{word}' is no item. There are {', '.join(by_name)}.")
    return [by_name[word] for word in words.split(',')]


def given_s(item: Item, left_s: float) -> float:
    """The time that an item gets of what is left; 0: it has no room. A child may need END_S beyond its limit."""
    room = left_s - END_S
    return min(item.most_s, room) if room >= item.least_s else 0.0


def command_of(item: Item, limit_s: float, out: pathlib.Path) -> list[str]:
    program, *options = item.command.split()
    # A long run plans its seconds behind its preparation; the others begin nothing that would end later.
    limit = ['--seconds', f'{limit_s - 90:.0f}'] if program == 'endurance.py' else ['--limit-s', f'{limit_s:.0f}']
    return [sys.executable, str(FOLDER / program), *options, *limit, '--out', str(out)]


@contextlib.contextmanager
def surroundings(item: Item) -> Iterator[dict[str, str]]:
    if not item.under_mps:
        yield dict(os.environ)
        return
    with mps() as added:
        yield {**os.environ, **added}


def run(item: Item, limit_s: float, out: pathlib.Path) -> str:
    """Runs an item. Returns how it ended."""
    began = time.monotonic()
    try:
        with surroundings(item) as environment:
            code = subprocess.run(command_of(item, limit_s, out), env=environment, timeout=limit_s + END_S,
                                  check=False).returncode
    except NoMpsError as failure:
        return str(failure)
    except subprocess.TimeoutExpired:
        return f'ended after {limit_s + END_S:.0f} s'
    return f'exit code {code} after {time.monotonic() - began:.0f} s'


def rows_of(item: Item, out: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of an item's JSON; their conditions begin with its name."""
    if not out.exists():
        return []
    report = json.loads(out.read_text(encoding='utf-8'))
    return [{**row, 'condition': ' '.join((item.name, *_case(row), row['condition']))}
            for row in report.get('rows', []) if 'condition' in row]


def cells_of(out: pathlib.Path) -> list[forms.Cell]:
    """What an item's JSON says of the forms of compiled steps."""
    return forms.cells_of(json.loads(out.read_text(encoding='utf-8'))) if out.exists() else []


def _case(row: dict[str, Any]) -> tuple[str, ...]:
    return (row['law'][0] + str(row['load']),) if 'load' in row else ()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--items', default=DEFAULT)
    parser.add_argument('--limit-s', type=float, default=570.0)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    given = parser.parse_args()
    try:
        items = chosen(given.items)
    except ValueError as error:
        parser.error(str(error))
    given.out.mkdir(parents=True, exist_ok=True)
    return campaign(items, given.limit_s, given.out)


def campaign(items: Sequence[Item], limit_s: float, folder: pathlib.Path) -> int:
    """Runs items while there is time. Exit code 0: each one that began measured; 1: not so."""
    until, ends, rows, cells = time.monotonic() + limit_s, {}, [], list[forms.Cell]()
    for item in items:
        seconds = given_s(item, until - time.monotonic())
        out = folder / f'{item.name}.json'
        out.unlink(missing_ok=True)
        ends[item.name] = run(item, seconds, out) if seconds else 'left out: no time'
        print(f'{item.name}: {ends[item.name]}', file=sys.stderr, flush=True)
        rows += rows_of(item, out)
        cells += cells_of(out)
        (folder / 'campaign.json').write_text(json.dumps({'ends': ends, 'rows': rows}, indent=1), encoding='utf-8')
    for name, end in ends.items():
        print(f'{name}: {end}')
    print(table(rows))
    if cells:
        print('\n'.join((*forms.table(cells), *forms.verdicts(cells))))
    return 0 if all(end.startswith(('exit code 0', 'left out')) for end in ends.values()) else 1


if __name__ == '__main__':
    sys.exit(main())
