#!/usr/bin/env python3
"""Checks that every file includes only what its layer may use, and that no includes form a circle.

The layers and what they may include are the table LAYERS below; ARCHITECTURE.md has the reasons. Circles are
looked for among units (a header and the source beside it with the same stem) and among rooms (folders).
Exit code 0: all is well; 1: at least one include breaks a rule, each is printed with file and line; 2: bad use.

  check_layers.py [--root FOLDER]
  check_layers.py --self-test     breaks each rule in a scratch folder and expects a report
"""

import collections
import dataclasses
import pathlib
import re
import sys

import gate

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:<([^>]+)>|"([^"]+)")')
SOURCE_SUFFIXES = {'.h', '.hpp', '.c', '.cc', '.cu', '.cuh'}

STANDARD = re.compile(r'^[a-z_0-9]+$')  # <vector>, <cstdint>
C_AND_POSIX = re.compile(
    r'^(assert|ctype|errno|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stdatomic|stdbool|stddef|stdint'
    r'|stdio|stdlib|string|time|wchar'
    r'|cxxabi|dlfcn|fcntl|poll|pthread|sched|spawn|unistd|immintrin|x86intrin|sys/[a-z_]+|linux/[a-z_]+)\.h$')

ABSEIL = re.compile(r'^absl/')
ATOMIC_QUEUE = re.compile(r'^atomic_queue/')
EIGEN = re.compile(r'^(unsupported/)?Eigen/')
NLOHMANN = re.compile(r'^nlohmann/')
NANOFLANN = re.compile(r'^nanoflann\.hpp$')
LEMON = re.compile(r'^lemon/')
PROTOZERO = re.compile(r'^protozero/')
CLI11 = re.compile(r'^CLI/')
HTTPLIB = re.compile(r'^httplib\.h$')
BENCHMARK = re.compile(r'^benchmark/')
PYTHON = re.compile(r'^Python\.h$')
XLA_FFI = re.compile(r'^xla/ffi/api/')
CUDA = re.compile(r'^(cuda|cooperative_groups|nvtx3|cublas|cudnn|cub|crt|mma\.h|math_constants\.h)')

CORE = re.compile(r'^src/core/')
BASE = re.compile(r'^src/core/base/')
QUEUEING = re.compile(r'^src/core/queueing/')
PROMISE = re.compile(r'^src/core/promise/')
SEAMS = re.compile(r'^src/core/seams/')
CHECKS = re.compile(r'^src/core/checks/')
EVIDENCE = re.compile(r'^src/core/evidence/')
STATE = re.compile(r'^src/core/state/')
LOG = re.compile(r'^src/core/log/')
LEARN = re.compile(r'^src/core/flow/learn/')
VERBS = re.compile(r'^src/core/flow/verbs/')
FUSED = re.compile(r'^src/core/flow/fused/')
WAITING = re.compile(r'^src/core/flow/waiting/')
FLOW = re.compile(r'^src/core/flow/')
PTX = re.compile(r'^src/ptx/twin\.h$')
PTX_FUSED = re.compile(r'^src/ptx/fused\.h$')
# The C API plans for the apps of a runtime, the command for a file.
PARTITION = re.compile(r'^src/models/partition/')
# The C API places arrays; the command places files, and says why an app has no GPU.
PLACEMENT = re.compile(r'^src/models/placement/')
SRC = re.compile(r'^src/')
PUBLIC_C = re.compile(r'^gpushare/gpushare\.h$')
PUBLIC = re.compile(r'^gpushare/')
C_HEADERS = re.compile(r'^gpushare/gpushare(_policy|_cost_model)?\.h$')
CATALOGUE = re.compile(r'^benchmarks/kernels/(catalogue|registration|fused/fused_catalogue)\.h$')
KERNEL_CONTRACT = re.compile(r'^gpushare/device/')
KERNEL_INTERFACE = re.compile(r'^gpushare/kernels\.h$')


@dataclasses.dataclass(frozen=True)
class Layer:
    """What the files under `folder` may include; the first layer whose folder matches counts."""
    name: str
    folder: str
    allowed: tuple
    pattern: str = ''         # file names that the layer has, all when empty
    may_reach: tuple = ()     # what nothing may reach through the project's own headers


def own(folder):
    return re.compile('^' + re.escape(folder) + '/')


def rooms(folder, names):
    """The folders of these rooms, as `own` gives them."""
    return tuple(own(f'{folder}/{name}') for name in names.split())


# What rooms of the core have below them.
SEAMS_BELOW = (PROMISE, QUEUEING, BASE)
STATE_BELOW = (CHECKS, SEAMS, *SEAMS_BELOW)
MODELS_BELOW = (CHECKS, SEAMS, QUEUEING, BASE)

# Where circles are looked for.
CIRCLE_FOLDERS = ('src', 'bindings', 'include', 'kernels', 'tools', 'benchmarks')

LAYERS = (
    # The core, by room.
    Layer('base', 'src/core/base', (BASE, ABSEIL, ATOMIC_QUEUE)),
    Layer('queueing', 'src/core/queueing', (QUEUEING, BASE, ABSEIL)),
    Layer('promise', 'src/core/promise', (PROMISE, QUEUEING, BASE, ABSEIL)),
    Layer('seams', 'src/core/seams', (SEAMS, *SEAMS_BELOW, ABSEIL)),
    Layer('checks', 'src/core/checks', (CHECKS, SEAMS, *SEAMS_BELOW, ABSEIL)),
    Layer('evidence', 'src/core/evidence', (EVIDENCE, SEAMS, *SEAMS_BELOW, ABSEIL)),
    Layer('state', 'src/core/state', (STATE, EVIDENCE, *STATE_BELOW, ABSEIL)),
    Layer('log', 'src/core/log', (LOG, STATE, *STATE_BELOW, ABSEIL)),
    Layer('learn', 'src/core/flow/learn', (LEARN, STATE, EVIDENCE, *STATE_BELOW, ABSEIL)),
    Layer('verbs', 'src/core/flow/verbs', (VERBS, LEARN, LOG, STATE, *STATE_BELOW, ABSEIL)),
    Layer('fused', 'src/core/flow/fused', (FUSED, VERBS, LOG, STATE, *STATE_BELOW, ABSEIL)),
    *(Layer(room, f'src/core/flow/{room}', (own(f'src/core/flow/{room}'), VERBS, LEARN, LOG, STATE, *STATE_BELOW, ABSEIL))
      for room in ('planning', 'places', 'loss', 'entry')),
    Layer('waiting', 'src/core/flow/waiting', (WAITING, VERBS, LOG, STATE, *STATE_BELOW, ABSEIL)),
    Layer('flow', 'src/core/flow', (FLOW, LOG, STATE, *STATE_BELOW, ABSEIL)),
    Layer('policies', 'src/core/policies', (own('src/core/policies'), *STATE_BELOW, ABSEIL)),
    # Drives the flow from a log.
    Layer('replay', 'src/core/replay', (CORE, ABSEIL)),

    # The helpers over nlohmann-json are for .cc files: no other header of models may reach them.
    Layer('models json helpers', 'src/models', (own('src/models'), *MODELS_BELOW, ABSEIL, NLOHMANN),
          pattern=r'^json_\w+\.h$'),
    # What a promise allows is asked where the promise is translated.
    Layer('models placement', 'src/models/placement', (own('src/models'), *MODELS_BELOW, PROMISE, ABSEIL),
          pattern=r'^state\.cc$'),
    Layer('models headers', 'src/models', (own('src/models'), *MODELS_BELOW, ABSEIL, EIGEN, NANOFLANN, LEMON),
          pattern=r'\.h$', may_reach=(NLOHMANN,)),
    Layer('models', 'src/models',
          (own('src/models'), *MODELS_BELOW, ABSEIL, EIGEN, NANOFLANN, LEMON, NLOHMANN)),
    # Calibration, by room; the facade at the root uses them all.
    *(Layer(f'calibration {name}', f'src/calibration/{name}',
            (*rooms('src/calibration', f'{name} {below}'), own('src/models'), CORE, ABSEIL))
      for name, below in (
          ('base', ''),
          ('launch', 'base'),
          ('profile', 'base launch'),
          ('device', 'base launch profile'),
          ('kernel', 'base launch profile'),
          ('pairs', 'base launch profile'),
          ('pre_run', 'base launch kernel'),
          ('stages', 'base launch profile device kernel pairs'))),
    Layer('calibration', 'src/calibration', (own('src/calibration'), own('src/models'), CORE, ABSEIL),
          pattern=r'^calibration\.(h|cc)$'),
    Layer('sim warp', 'src/sim/warp', (own('src/sim/warp'), BASE, ABSEIL)),
    Layer('sim', 'src/sim', (own('src/sim'), CORE, ABSEIL)),
    Layer('null', 'src/null', (own('src/null'), CORE, ABSEIL, ATOMIC_QUEUE)),
    Layer('trace', 'src/trace', (own('src/trace'), CORE, ABSEIL, PROTOZERO)),
    # The standard library alone, and the layout of the launch header, which is plain C.
    Layer('ptx', 'src/ptx', (own('src/ptx'), re.compile(r'^gpushare/device/launch\.h$'))),
    # The CUDA device, by room; the device and its launcher at the root use them all. Device code: no Abseil
    # and no Eigen, not even through a header of ours.
    *(layer
      for name, below in (
          ('driver', ''),
          ('code', 'driver'),
          ('graphs', 'driver code'),
          ('library', 'driver'),
          ('counters', 'driver'),
          ('lanes', 'driver library'))
      for layer in (
          Layer(f'cuda {name} device code', f'src/cuda/{name}',
                (*rooms('src/cuda', f'{name} {below}'), CORE, CUDA, PUBLIC),
                pattern=r'\.cuh?$', may_reach=(ABSEIL, EIGEN)),
          Layer(f'cuda {name}', f'src/cuda/{name}',
                (*rooms('src/cuda', f'{name} {below}'), CORE, ABSEIL, CUDA, KERNEL_CONTRACT,
                 *((PTX,) if name == 'code' else ()))))),
    Layer('cuda', 'src/cuda', (own('src/cuda'), CORE, ABSEIL, CUDA, KERNEL_CONTRACT),
          pattern=r'^(cuda_device|cuda_device_absent|launcher)\.(h|cc)$'),
    # Kernel bodies: device code that a user may launch, and the C interface that packs its parameters.
    Layer('kernels', 'kernels', (own('kernels'), KERNEL_CONTRACT, KERNEL_INTERFACE, CUDA),
          may_reach=(ABSEIL, EIGEN)),
    Layer('C header', 'bindings/c', (PUBLIC_C,), pattern=r'^gpushare\.h$'),
    Layer('bindings', 'bindings/c', (own('bindings/c'), SRC, PUBLIC, ABSEIL)),
    # libgpushare_ptx.so: the facade of src/ptx behind a C header.
    Layer('PTX library', 'bindings/ptx', (PTX, re.compile(r'^gpushare/ptx\.h$'))),
    Layer('Python extension', 'bindings/python/native', (own('bindings/python/native'), PUBLIC_C, PYTHON)),
    Layer('kernel contract', 'include/gpushare/device', (PUBLIC, CUDA)),
    # Leads to the header in bindings/c, and has nothing else.
    Layer('way to the C header', 'include/gpushare', (re.compile(r'^\.\./\.\./bindings/c/gpushare(_policy|_cost_model)?\.h$'),),
          pattern=r'^gpushare(_policy|_cost_model)?\.h$'),
    Layer('public API', 'include', (PUBLIC,)),
    # The command's programs for a real GPU: the catalogue of kernels, and CUDA in this room alone.
    Layer('tools cuda', 'tools/gpushare/cuda',
          (*rooms('tools/gpushare', 'cuda base scenario workloads'), PUBLIC, CUDA, CATALOGUE),
          may_reach=(ABSEIL, EIGEN)),
    # Fused twins have no function of the C API yet.
    Layer('tools fused twins', 'tools/gpushare/command',
          (*rooms('tools/gpushare', 'command base'), PTX_FUSED), pattern=r'^ptx_fuse\.cc$'),
    # The command's other rooms.
    *(Layer(f'tools {name}', f'tools/gpushare/{name}',
            (*rooms('tools/gpushare', f'{name} {below}'), PUBLIC, *libraries))
      for name, below, libraries in (
          ('base', '', (NLOHMANN,)),
          ('scenario', 'base', ()),
          ('workloads', 'base scenario', ()),
          ('run', 'base scenario workloads', ()),
          ('events', 'base scenario workloads run', ()),
          ('colocate', 'base scenario workloads run events', ()),
          ('report', 'base scenario workloads run events colocate', ()),
          ('plan', 'base scenario workloads run colocate report datacenter', (NLOHMANN, PARTITION, PLACEMENT)),
          ('plot', 'base scenario workloads run events colocate report', ()),
          ('profile', 'base scenario workloads run events colocate report', (NLOHMANN,)),
          ('datacenter', 'base scenario workloads run colocate report', (NLOHMANN, PLACEMENT)),
          ('command', 'base scenario workloads run events colocate report plan plot datacenter profile',
           (CLI11, PARTITION, PLACEMENT)))),
    # Like the command's room for CUDA: the catalogue for programs in other languages.
    Layer('examples cuda', 'examples/pytorch', (own('examples'), PUBLIC, CUDA, CATALOGUE),
          pattern=r'^cuda_\w+\.cc$', may_reach=(ABSEIL, EIGEN)),
    # Users copy this example into a project of their own, so its header is included without a folder.
    Layer('kernels example', 'examples/kernels', (re.compile(r'^cuda_driver\.h$'), PUBLIC)),
    Layer('jax example', 'examples/jax', (PUBLIC, XLA_FFI)),
    # Servers in C++, each on a library that a machine may lack.
    Layer('servers of frameworks', 'examples/servers/frameworks',
          (PUBLIC, CUDA, re.compile(r'^(torch/|c10/|onnxruntime_cxx_api\.h$|NvInfer\.h$)'))),
    Layer('servers', 'examples/servers', (own('examples/servers'), own('examples/kernels'), PUBLIC, NLOHMANN, HTTPLIB,
                                              re.compile(r'^triton/core/'))),
    Layer('examples', 'examples', (own('examples'), PUBLIC)),
    # Unit benchmarks measure one stage by itself, as unit tests do; the others go through the ABI.
    Layer('unit benchmarks', 'benchmarks/host',
          (own('benchmarks/harness'), own('tests/core'), PUBLIC, BENCHMARK, SRC, ABSEIL),
          pattern=r'^(markov|models|placement|plan|plan_live|plan_stage|sim)_benchmark\.cc$', may_reach=(CUDA,)),
    Layer('host benchmarks', 'benchmarks/host', (own('benchmarks/harness'), PUBLIC, BENCHMARK),
          may_reach=(CUDA,)),
    # The catalogue as the C interface takes it.
    Layer('workload registration', 'benchmarks/kernels', (own('benchmarks/kernels'), PUBLIC_C),
          pattern=r'^registration\.h$'),
    Layer('workload kernels', 'benchmarks/kernels',
          (own('benchmarks/kernels'), own('kernels'), CUDA, KERNEL_CONTRACT)),
    # What programs for a GPU share, which measure the device seam and the ABI.
    Layer('GPU harness', 'benchmarks/harness',
          (own('benchmarks/harness'), own('benchmarks/kernels'), own('kernels'), SRC, ABSEIL, CUDA,
           KERNEL_CONTRACT),
          pattern=r'^gpu_\w+\.(h|cc|cu)$'),
    Layer('harness', 'benchmarks/harness', (own('benchmarks/harness'), NLOHMANN), may_reach=(CUDA, SRC)),
    # Recorded launches come from the reader that the tests have, and are chosen without a GPU.
    Layer('fused twins', 'benchmarks/gpu/ptx',
          (own('benchmarks/gpu/ptx'), own('benchmarks/harness'), own('tests/cuda/code'), PUBLIC, SRC, ABSEIL,
           NLOHMANN)),
    Layer('GPU benchmarks', 'benchmarks/gpu',
          (own('benchmarks/gpu'), own('benchmarks/harness'), own('benchmarks/kernels'), own('kernels'),
           SRC, PUBLIC, ABSEIL, CUDA)),
    # The scheduler by itself on the paced device, and the library through its ABI on a GPU.
    Layer('idle on the paced device', 'benchmarks/idle',
          (own('benchmarks/idle'), own('benchmarks/harness'), SRC, ABSEIL),
          pattern=r'^idle_subject_paced\.cc$', may_reach=(CUDA,)),
    Layer('idle on a GPU', 'benchmarks/idle',
          (own('benchmarks/idle'), own('benchmarks/harness'), PUBLIC, CUDA),
          pattern=r'^idle_subject_cuda\.cc$'),
    Layer('idle', 'benchmarks/idle', (own('benchmarks/idle'), own('benchmarks/harness')),
          may_reach=(CUDA, SRC)),
    # Schedules of one experiment, through the ABI; on a GPU with the catalogue's kernels.
    Layer('kernelet on a GPU', 'benchmarks/kernelet',
          (own('benchmarks/kernelet'), own('benchmarks/harness'), own('benchmarks/kernels'), PUBLIC),
          pattern=r'^platform_cuda\.cc$'),
    Layer('kernelet', 'benchmarks/kernelet',
          (own('benchmarks/kernelet'), own('benchmarks/harness'), PUBLIC), may_reach=(CUDA, SRC)),
    # Groups of runtimes through the C++ API; on GPUs with the catalogue's kernels.
    Layer('group on GPUs', 'benchmarks/group',
          (own('benchmarks/group'), own('benchmarks/harness'), own('benchmarks/kernels'), PUBLIC, CUDA),
          pattern=r'^group_work_cuda\.cc$'),
    Layer('group', 'benchmarks/group', (own('benchmarks/group'), own('benchmarks/harness'), PUBLIC),
          may_reach=(CUDA, SRC)),
    # The warp-level simulator by itself.
    Layer('warp experiments', 'benchmarks/warp',
          (own('benchmarks/warp'), own('benchmarks/harness'), own('src/sim/warp'), ABSEIL), may_reach=(CUDA,)),
    Layer('soak on a GPU', 'benchmarks/soak',
          (own('benchmarks/soak'), own('benchmarks/harness'), own('benchmarks/kernels'), PUBLIC, CUDA),
          pattern=r'^soak_work_cuda\.cc$'),
    Layer('faults on a GPU', 'benchmarks/faults',
          (own('benchmarks/faults'), own('benchmarks/soak'), own('benchmarks/harness'), PUBLIC, CUDA)),
    Layer('soak', 'benchmarks/soak', (own('benchmarks/soak'), own('benchmarks/harness'), PUBLIC),
          may_reach=(CUDA, SRC)),
)


def layer_of(path):
    """The layer of a path relative to the root, or None."""
    text = path.as_posix()
    for layer in LAYERS:
        if text.startswith(layer.folder + '/') and re.search(layer.pattern, path.name):
            return layer
    return None


def includes_of(path):
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) or match.group(2), bool(match.group(1))


def is_allowed(layer, name, in_angles):
    if in_angles and (STANDARD.match(name) or C_AND_POSIX.match(name)):
        return True
    return any(pattern.match(name) for pattern in layer.allowed)


def reaches(root, path, forbidden, seen):
    """The chain of includes from `path` to something forbidden, or None."""
    if path in seen or not (root / path).is_file():
        return None
    seen.add(path)
    for _, name, _ in includes_of(root / path):
        if any(pattern.match(name) for pattern in forbidden):
            return [path.as_posix(), name]
        chain = reaches(root, pathlib.Path(name), forbidden, seen)
        if chain:
            return [path.as_posix()] + chain
    return None


def source_files(root, folders):
    for folder in folders:
        for full in sorted((root / folder).rglob('*')):
            if full.suffix in SOURCE_SUFFIXES and full.is_file():
                yield full


def check_includes(root):
    """The includes that a layer does not allow, as printable lines."""
    problems = []
    for full in source_files(root, sorted({layer.folder.split('/')[0] for layer in LAYERS})):
        path = full.relative_to(root)
        layer = layer_of(path)
        if layer is None:
            problems.append(f'{path}:1: the folder belongs to no layer in tools/check_layers.py')
            continue
        for number, name, in_angles in includes_of(full):
            if not is_allowed(layer, name, in_angles):
                problems.append(f'{path}:{number}: {layer.name} may not include "{name}"')
        if layer.may_reach:
            chain = reaches(root, path, layer.may_reach, set())
            if chain:
                problems.append(f'{path}:1: {layer.name} may not reach "{chain[-1]}" through '
                                + ' -> '.join(chain[:-1]))
    return problems


def include_edges(root):
    """(includer, included, line) for the project's own files, as paths relative to the root."""
    for full in source_files(root, CIRCLE_FOLDERS):
        path = full.relative_to(root)
        for number, name, _ in includes_of(full):
            # The installed names of the public headers, then the names in the repository.
            places = (name.replace('gpushare/', 'bindings/c/', 1) if C_HEADERS.match(name) else 'include/' + name, name)
            for place in places:
                if place.startswith(CIRCLE_FOLDERS) and (root / place).is_file():
                    yield path, pathlib.PurePath(place), number
                    break


def shortest_path(graph, start, end):
    """The nodes from `start` to `end` over at least one edge, or None."""
    before, waiting = {}, collections.deque([start])
    while waiting:
        node = waiting.popleft()
        for follower in sorted(graph.get(node, ())):
            if follower in before:
                continue
            before[follower] = node
            if follower == end:
                path = [end]
                while len(path) == 1 or path[-1] != start:
                    path.append(before[path[-1]])
                return path[::-1]
            waiting.append(follower)
    return None


def circles(graph):
    """A shortest circle through each node that is on one, but none through a node of an earlier circle."""
    seen = set()
    for node in sorted(graph):
        if node not in seen:
            circle = shortest_path(graph, node, node)
            if circle:
                seen.update(circle)
                yield circle


def circle_lines(edges):
    """Circles among units and among folders, each with the include or import that starts it, as printable lines."""
    problems = []
    for kind, group in (('files', lambda path: path.with_suffix('').as_posix()),
                        ('folders', lambda path: path.parent.as_posix())):
        graph = collections.defaultdict(dict)
        for user, used, number in edges:
            if group(user) != group(used):
                graph[group(user)].setdefault(group(used), f'{user}:{number}')
        for circle in circles(graph):
            steps = ', '.join(f'{graph[a][b]} -> {b}' for a, b in zip(circle[1:], circle[2:]))
            problems.append(f'{graph[circle[0]][circle[1]]}: a circle among {kind}: '
                            f'{circle[0]} -> {circle[1]}, {steps}')
    return problems


def check(root):
    """All broken rules as printable lines."""
    return check_includes(root) + circle_lines(list(include_edges(root)))


SELF_TEST_BAD = {
    'src/core/base/a.cc': ['#include "src/models/profile/profile.h"', '#include <Eigen/Dense>',
                           '#include "nlohmann/json.hpp"', '#include <cuda_runtime.h>',
                           '#include "src/core/seams/device.h"'],
    'src/core/seams/a.h': ['#include "src/core/state/tables.h"', '#include <atomic_queue/atomic_queue.h>'],
    'src/core/evidence/a.h': ['#include "src/core/state/tables.h"'],
    'src/core/state/a.h': ['#include "src/core/log/event_log.h"', '#include "src/core/flow/submit.h"'],
    'src/core/log/a.cc': ['#include "src/core/flow/submit.h"', '#include "src/core/replay/replay.h"'],
    'src/core/flow/verbs/a.cc': ['#include "src/core/flow/launch.h"', '#include "src/core/flow/fused/form.h"'],
    'src/core/flow/fused/a.cc': ['#include "src/core/flow/launch.h"', '#include "src/core/policies/baselines/fifo.h"'],
    'src/core/flow/a.cc': ['#include "src/core/policies/baselines/fifo.h"', '#include "src/core/replay/replay.h"'],
    'src/core/flow/learn/a.h': ['#include "src/core/flow/verbs/running.h"'],
    'src/core/flow/verbs/b.h': ['#include "src/core/evidence/evidence.h"'],
    'src/core/policies/a.cc': ['#include "src/core/state/tables.h"', '#include "src/core/flow/submit.h"'],
    'src/core/elsewhere/a.cc': ['#include <vector>'],
    'src/models/a.h': ['#include <nlohmann/json.hpp>', '#include "src/sim/sim_device.h"',
                       '#include "src/core/state/tables.h"'],
    'src/sim/a.cc': ['#include "src/models/profile/profile.h"', '  #  include <Eigen/Core>'],
    'src/sim/warp/a.cc': ['#include "src/core/seams/device.h"', '#include "src/sim/engine.h"'],
    'src/null/a.cc': ['#include "src/sim/sim_device.h"'],
    'src/trace/a.cc': ['#include <nlohmann/json.hpp>'],
    'src/cuda/lanes/a.cu': ['#include "absl/status/status.h"', '#include <Eigen/Dense>',
                            '#include "src/cuda/graphs/a.h"'],
    'src/cuda/lanes/a.cc': ['#include "src/sim/sim_device.h"', '#include "src/cuda/launcher.h"'],
    'src/cuda/code/a.h': ['#include "src/cuda/graphs/b.h"', '#include "src/cuda/lanes/cuda_lane.h"'],
    'src/cuda/elsewhere.cc': ['#include <vector>'],
    'src/elsewhere/a.cc': ['#include <vector>'],
    'bindings/c/gpushare.h': ['#include "src/core/base/types.h"'],
    'include/gpushare/gpushare.hpp': ['#include "absl/types/span.h"', '#include <cuda_runtime.h>'],
    'include/gpushare/gpushare.h': ['#include <gpushare/gpushare.hpp>', '#include "../../bindings/c/handles.h"'],
    'src/calibration/kernel/a.h': ['#include "src/calibration/stages/work.h"',
                                   '#include "src/calibration/pairs/pair.h"',
                                   '#include "src/calibration/calibration.h"'],
    'src/calibration/elsewhere/a.cc': ['#include <vector>'],
    'tools/gpushare/run/a.cc': ['#include "src/core/base/types.h"', '#include <cuda_runtime.h>',
                                '#include "benchmarks/kernels/catalogue.h"', '#include <CLI/CLI.hpp>',
                                '#include "tools/gpushare/report/table.h"',
                                '#include "tools/gpushare/cuda/blas.h"'],
    'tools/gpushare/elsewhere/a.cc': ['#include <vector>'],
    'tools/gpushare/cuda/a.cc': ['#include "src/cuda/driver/driver.h"', '#include "benchmarks/kernels/hash.h"'],
    'examples/a.c': ['#include "bindings/c/handles.h"'],
    'examples/jax/a.cc': ['#include "bindings/c/handles.h"', '#include <xla/service/hlo.h>'],
    'kernels/dnn/a.cuh': ['#include "benchmarks/kernels/hash.h"', '#include <gpushare/gpushare.h>',
                          '#include "src/core/base/types.h"', '#include "absl/status/status.h"'],
    'benchmarks/host/host_benchmark.cc': ['#include "src/core/flow/scheduler.h"'],
    'benchmarks/harness/json.h': ['#include <cuda_runtime.h>', '#include "src/core/base/types.h"'],
    'benchmarks/soak/soak.cc': ['#include "benchmarks/kernels/catalogue.h"'],
}
SELF_TEST_GOOD = {
    'src/core/base/a.cc': ['#include <vector>', '#include "src/core/base/types.h"',
                           '#include "absl/types/span.h"', '#include <atomic_queue/atomic_queue.h>',
                           '#include <unistd.h>', '// #include "src/models/profile/profile.h"'],
    'src/core/flow/a.cc': ['#include "src/core/flow/verbs/finish.h"', '#include "src/core/flow/fused/form.h"',
                           '#include "src/core/flow/a.h"', '#include "src/core/log/event_log.h"'],
    'src/core/flow/a.h': ['#include "src/core/state/tables.h"'],
    'src/core/flow/fused/a.cc': ['#include "src/core/flow/verbs/finish.h"'],
    'src/core/replay/a.cc': ['#include "src/core/flow/submit.h"', '#include "src/core/log/event_log.h"'],
    'src/models/a.cc': ['#include <nlohmann/json.hpp>', '#include <Eigen/Dense>'],
    'src/cuda/driver/a.cu': ['#include <cuda_runtime.h>', '#include "src/cuda/driver/probe.h"'],
    'src/trace/a.cc': ['#include <protozero/pbf_writer.hpp>'],
    'bindings/c/a.cc': ['#include "src/sim/sim_device.h"', '#include "absl/status/status.h"'],
    'include/gpushare/gpushare.hpp': ['#include <gpushare/gpushare.h>', '#include <string>'],
    'include/gpushare/gpushare.h': ['#include "../../bindings/c/gpushare.h"'],
    'src/calibration/calibration.cc': ['#include "src/calibration/stages/stages.h"'],
    'src/calibration/stages/stages.cc': ['#include "src/calibration/kernel/kernel.h"',
                                         '#include "src/models/profile/profile.h"'],
    'tools/gpushare/command/a.cc': ['#include <CLI/CLI.hpp>', '#include <gpushare/gpushare.hpp>',
                                    '#include "tools/gpushare/report/table.h"'],
    'tools/gpushare/report/a.cc': ['#include "tools/gpushare/colocate/colocate.h"'],
    'tools/gpushare/cuda/a.cc': ['#include <cublas_v2.h>', '#include "benchmarks/kernels/catalogue.h"'],
    'kernels/dnn/a.cuh': ['#include <gpushare/device/variants.cuh>', '#include <cuda_runtime.h>',
                          '#include "kernels/warp.h"', '#include <gpushare/kernels.h>'],
    'benchmarks/kernels/a.cc': ['#include "kernels/dnn/a.cuh"', '#include "benchmarks/kernels/hash.h"'],
    'benchmarks/host/plan_benchmark.cc': ['#include "src/core/seams/policy.h"'],
}
# Each entry: what the report must say, and a tree that breaks exactly one rule through a chain of includes.
SELF_TEST_CHAINS = (
    ('may not reach', {
        'src/cuda/driver/a.cu': ['#include "src/cuda/driver/b.h"'],
        'src/cuda/driver/b.h': ['#include "src/core/base/c.h"'],
        'src/core/base/c.h': ['#include "absl/types/span.h"'],
    }),
    ('may not reach', {
        'src/models/profile/profile.h': ['#include "src/models/json/json_fields.h"'],
        'src/models/json/json_fields.h': ['#include <nlohmann/json.hpp>'],
    }),
    # Two headers.
    ('src/null/a.h:1: a circle among files: src/null/a -> src/null/b, src/null/b.h:2 -> src/null/a', {
        'src/null/a.h': ['#include "src/null/b.h"'],
        'src/null/b.h': ['#include <vector>', '#include "src/null/a.h"'],
    }),
    # Three units, through a source.
    ('a circle among files', {
        'src/core/flow/a.cc': ['#include "src/core/flow/a.h"', '#include "src/core/flow/b.h"'],
        'src/core/flow/a.h': ['#include <vector>'],
        'src/core/flow/b.h': ['#include "src/core/flow/c.h"'],
        'src/core/flow/c.cc': ['#include "src/core/flow/a.h"'],
        'src/core/flow/c.h': ['#include <vector>'],
    }),
    # Through a public header's installed name.
    ('a circle among files', {
        'include/gpushare/a.hpp': ['#include <gpushare/b.hpp>'],
        'include/gpushare/b.hpp': ['#include <gpushare/a.hpp>'],
    }),
    # Rooms whose layers allow both includes, and no circle among files.
    ('a circle among folders: bindings/c -> bindings/c/deep', {
        'bindings/c/a.cc': ['#include "bindings/c/deep/b.h"'],
        'bindings/c/c.h': ['#include <vector>'],
        'bindings/c/deep/b.h': ['#include "bindings/c/c.h"'],
    }),
)


def self_test():
    """Every broken rule is reported, nothing else is."""
    problems = gate.problems_in(check, SELF_TEST_BAD)
    failures = [f'{name}:{number} breaks a rule and is not reported: {line}'
                for name, lines in SELF_TEST_BAD.items() for number, line in enumerate(lines, 1)
                if not any(problem.startswith(f'{name}:{number}:') for problem in problems)]
    failures += [f'a correct file is reported: {problem}' for problem in gate.problems_in(check, SELF_TEST_GOOD)]
    for expected, tree in SELF_TEST_CHAINS:
        problems = gate.problems_in(check, tree)
        if len(problems) != 1 or expected not in problems[0]:
            failures.append(f'expected "{expected}" for {next(iter(tree))}, reported: {problems}')
    return failures


def main():
    arguments = gate.parser('Checks the layer rules of the sources.').parse_args()
    return gate.report(arguments, check, self_test, 'The layer rules hold.')


if __name__ == '__main__':
    sys.exit(main())
