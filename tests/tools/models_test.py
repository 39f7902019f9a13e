#!/usr/bin/env python3
"""The models on the samples of an H200: `gpushare evaluate-models` and the errors that it may find.

  models_test.py GPUSHARE SAMPLES_GZ PROFILE

The committed profile must be the one that `gpushare profile train` makes of it with the samples. The bounds are those of docs/models.md and a little room, so that a change that costs accuracy fails here.
"""

from __future__ import annotations

import gzip
import json
import math
import pathlib
import subprocess
import sys
import tempfile

# Family and model: mean error at most, rows at least.
BOUNDS = {
    ('workers', 'line over block tasks'): (0.010, 100),
    ('ordinary grids', 'line over block tasks'): (0.011, 100),
    ('workers', 'line, rounds and sizes'): (0.007, 100),
    ('ordinary grids', 'line, rounds and sizes'): (0.006, 100),
    ('pinned copies', 'table over bytes'): (0.010, 4),
    ('pageable copies', 'table over bytes'): (0.065, 10),
    ('copies beside a copy the other way', 'kept share over bytes'): (0.04, 9),
    ('copies beside kernels', "delay over the kernel's DRAM use"): (0.04, 30),
    ('kernels beside copies', "kept share over the kernel's DRAM use"): (0.01, 9),
    ('whole queries', 'line or table over the input size'): (0.05, 55),
    # Drawn at random after the model was chosen.
    ('blind library calls above 100 us', 'least time x ratio'): (0.11, 40),
    ('blind library calls', 'least time x ratio'): (0.14, 60),
    ('fused kernels at other ratios', 'bent line, with 100 %'): (0.010, 150),
    ('library calls above 100 us', 'least time x ratio'): (0.075, 130),
    ('library calls', 'least time x ratio'): (0.1, 150),
    ('fused kernels', 'bent line, with 100 %'): (0.012, 400),
    ('kernels on fewer SMs', 'knee from counters'): (0.075, 300),
    ('kernels on fewer SMs', 'a / m + b'): (0.04, 300),
    ('pairs on partitions', "ridge over the neighbour's traffic"): (0.035, 200),
    ('speeds on same SMs', 'Gaussian process over counters'): (0.06, 700),
    ('speeds on same SMs', 'the same, kernels never met'): (0.21, 1500),
    ('speeds on same SMs', 'Markov'): (0.34, 700),
    ('speeds on same SMs', 'Markov, older first'): (0.235, 700),
    # A user's kernel, registered by its counters.
    ('kernels registered by counters', 'counters and a timed occupancy'): (0.18, 5000),
    ('kernels registered by counters', 'counters alone'): (0.21, 5000),
    # What 200 runs of held-out pairs teach, on later repeats of them and at other numbers of workers.
    ('co-schedules', 'before runs'): (0.062, 100),
    ('co-schedules', 'after 200 runs'): (0.008, 100),
    ('co-schedules with other workers', 'before runs'): (0.062, 140),
    ('co-schedules with other workers', 'after 200 runs'): (0.062, 140),
    # What is lost by choosing a kernel's neighbour by the model.
    ('choice of neighbour', 'Gaussian process over counters'): (0.02, 30),
    ('choice of neighbour', 'Markov'): (0.16, 30),
    ('choice of neighbour', 'Markov, older first'): (0.085, 30),
}
AGREEMENT = 0.96  # on whether a neighbour takes more than a twentieth
# Of two kernels on the same SMs: mean difference of the IPC, as a share of the peak, at most; rank correlation of the
# throughput of pairs at least.
SAME_SMS = {'Gaussian process over counters': (0.02, 0.94), 'Markov': (0.18, 0.48),
            'Markov, pipes': (0.065, 0.60), 'Markov, older first': (0.057, 0.76)}


# Of single kernels by Kernelet's chain, the same difference.
SINGLE = {'Markov': 0.19, 'Markov, blocks': 0.185, 'Markov, two kinds of access': 0.19,
          'Markov, two kinds of access, blocks': 0.185, 'Markov, all coalesced': 0.32}


def evaluated(program: str, samples: pathlib.Path, folder: pathlib.Path) -> dict:
    subprocess.run([program, 'evaluate-models', str(samples), '--out', str(folder)], check=True)
    page = (folder / 'models.html').read_text()
    assert '<svg' in page and 'http' not in page.replace('http://www.w3.org', ''), 'the page needs a network'
    return json.loads((folder / 'models.json').read_text())


def read(profile: pathlib.Path) -> dict:
    found = json.loads(profile.read_text())
    return {**found, 'learned': json.loads(found['learned'])}


def alike(one: object, other: object) -> bool:
    """The same, but for the last digits of numbers: mathematical functions differ between processors."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def check_trained(program: str, samples: pathlib.Path, profile: str, folder: pathlib.Path) -> None:
    again = folder / 'trained.json'
    subprocess.run([program, 'profile', 'train', profile, str(samples), '--out', str(again)], check=True)
    assert alike(read(again), read(pathlib.Path(profile))), f'{profile} is not trained with the samples'
    text = json.loads(json.loads(again.read_text())['learned'])
    pairs = text['co_resident']
    assert len(pairs['pairs']) == 3 * 2817 and pairs['error'] < 0.13 and pairs['new_kernel_error'] < 0.3, 'pairs on the same SMs'
    assert len(json.dumps(pairs, separators=(',', ':'))) < 60000, 'the model of pairs has grown'
    learned = text['kernels']
    assert len(learned) == 59 and all(one['solo']['samples'] >= 3 for one in learned), 'a kernel is not trained'
    classes = json.loads(json.loads(again.read_text())['learned'])['library']
    rows = sum(one['rows'].count(';') for one in classes)
    assert rows >= 650, f'{rows} library calls train'
    counted = [one for one in json.loads(again.read_text())['kernels'] if 'counters' in one]
    assert len(counted) == 45, f'{len(counted)} kernels have counters'


def main() -> int:
    program, packed, profile = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        samples = folder / 'samples.jsonl'
        samples.write_bytes(gzip.decompress(pathlib.Path(packed).read_bytes()))
        check_trained(program, samples, profile, folder)
        models = {(one['family'], one['model']): one for one in evaluated(program, samples, folder)['models']}
        for key, (mean, rows) in BOUNDS.items():
            one = models[key]
            assert one['rows'] >= rows, f"{key} has {one['rows']} rows"
            assert one['mean_error'] <= mean, f"{key} has a mean error of {one['mean_error']}"
        pairs = models['pairs on partitions', "ridge over the neighbour's traffic"]
        assert pairs['agreement_on_harm'] >= AGREEMENT, pairs['agreement_on_harm']
        for model, (difference, correlation) in SAME_SMS.items():
            ipc, pairs = models['IPC on same SMs', model], models['throughput of pairs', model]
            assert ipc['mean_difference'] <= difference, (model, ipc['mean_difference'])
            assert pairs['rows'] >= 150, (model, pairs['rows'])
            assert pairs['rank_correlation'] >= correlation, (model, pairs['rank_correlation'])
        for model, difference in SINGLE.items():
            single = models['IPC of single kernels', model]
            assert single['rows'] == 45, (model, single['rows'])
            assert single['mean_difference'] <= difference, (model, single['mean_difference'])
        # A file that is none is an error in one line, and nothing is written.
        samples.write_text('{"samples_version":1,"gpu_model":"a","sm_count":1}\n{"what":"solo"}\n')
        bad = subprocess.run([program, 'evaluate-models', str(samples), '--out', str(folder / 'none')],
                             capture_output=True, text=True, check=False)
        assert bad.returncode == 2 and 'Line 2' in bad.stderr, bad
        assert not (folder / 'none').exists()
    print('every bound holds')
    return 0


if __name__ == '__main__':
    sys.exit(main())
