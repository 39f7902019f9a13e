#!/usr/bin/env python3
"""Writes training steps beside the services of a profile as a scenario of `gpushare colocate`.

  steps.py PROFILE FOLDER

Writes FOLDER/steps.json and FOLDER/profile.json: PROFILE with three BE graphs added, which no GPU measured. The
services are graphs of PROFILE, each with an absolute target of eight times one query alone.
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

SERVICES = ('bert_b1', 'resnet50_b1', 'llm_decode_b16', 'prefill')
LOADS = (0.3, 0.55)
# Nodes, ns of each, SMs that each occupies.
STEPS = {'step400': (400, 100_000, 132), 'stepfine': (2000, 10_000, 132), 'stepsmall': (2000, 10_000, 60)}
DEMAND = {'issue': 0.4, 'tensor': 0.4, 'special': 0.0, 'dram': 0.3, 'l2': 0.3}
Json = dict[str, Any]


def step(like: Json, name: str) -> Json:
    nodes, duration_ns, sms = STEPS[name]
    node = {'duration_ns': duration_ns, 'blocks': sms, 'repeat': nodes, 'whole_sm': True, 'demand': DEMAND}
    record = like['simulation'] | {'demand': DEMAND, 'speed': [], 'nodes': [node], 'node_gap_ns': 500}
    return like | {'name': name, 'solo_hint_ns': 0, 'simulation': record}


def scenario() -> Json:
    return {'schema_version': 1, 'name': 'steps', 'profile': 'profile.json', 'queries': 3000,
            'policies': ['adaptive', 'baymax'],
            'lc': [{'name': name, 'kernel': name, 'target_solo_factor': 8} for name in SERVICES],
            'be': [{'name': name, 'kernel': name, 'depth': 2} for name in STEPS],
            'cases': [{'name': f'{service}-{name}-{load}', 'lc': [service], 'be': [name], 'load': load}
                      for service in SERVICES for name in STEPS for load in LOADS]}


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    profile = json.loads(pathlib.Path(sys.argv[1]).read_text())
    like = next(kernel for kernel in profile['kernels'] if kernel['name'] == SERVICES[0])
    profile['kernels'] += [step(like, name) for name in STEPS]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'profile.json').write_text(json.dumps(profile))
    (folder / 'steps.json').write_text(json.dumps(scenario(), indent=1))
    return 0


if __name__ == '__main__':
    sys.exit(main())
