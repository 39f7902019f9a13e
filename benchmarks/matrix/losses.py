#!/usr/bin/env python3
"""Whether a training step gives the same bits beside a service as alone, again and again.

  losses.py [--service decode_b16] [--step resnet50_b32] [--trainings 20] [--seconds 60]

Each training is a new one with the same seed, beside 700 queries. Prints for each how many losses differ from those
of the step run eagerly, and what the library recorded of the first step that does. Exit code 0: none differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

# cuBLAS gives the same bits in every run only with a fixed workspace; read when its handle is made.
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')

import torch
from arrivals import poisson
from baselines import Way
from networks import STEPS
from sharing import Promise
from unprepared import Service

import gpushare.torch

STEPS_COMPARED = 60
QUERIES = 700
LOAD = 0.5


def instance(name: str) -> Any:
    torch.manual_seed(11)
    return STEPS[name]()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--service', default='decode_b16')
    parser.add_argument('--step', default='resnet50_b32')
    parser.add_argument('--trainings', type=int, default=20)
    parser.add_argument('--seconds', type=float, default=60)
    arguments = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    service = Service(arguments.service)
    eager = instance(arguments.step)
    for _ in range(STEPS_COMPARED):
        eager()
    # Memory that graphs leave behind is used again by the next ones.
    solo_ns = Way('alone', service.call, None, (torch.cuda.Stream(), torch.cuda.Stream())).solo()
    failed = 0
    until = time.monotonic() + arguments.seconds
    for number in range(arguments.trainings):
        if time.monotonic() > until:
            break
        step = instance(arguments.step)
        with gpushare.torch.Training(service.sharing.runtime, step, state=step.state, name=f't{number}') as training:
            promise = Promise(1.2, 0, int(4 * solo_ns), int(solo_ns))
            run = service.sharing.run(poisson(number, QUERIES, solo_ns / LOAD), promise, training)
        torch.cuda.synchronize()
        compared = min(STEPS_COMPARED, int(step.count.item()))
        left, right = eager.losses[:compared], step.losses[:compared]
        differ = (left.view(torch.int32) != right.view(torch.int32)).nonzero().flatten().tolist()
        print(f"training {number}: {compared} steps, {len(differ)} differ", end='')
        if differ:
            at, failed = differ[0], failed + 1
            print(f", from step {at}: {left[at].item()} alone, {right[at].item()} beside; {run['records'][at]}", end='')
        print(flush=True)
    service.sharing.close()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
