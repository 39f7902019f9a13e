#!/usr/bin/env python3
"""Makes the twins of real kernels, assembles them with ptxas, and says what they cost in registers.

  corpus_ptxas.py LIBRARY [INPUT...]   LIBRARY: libgpushare_ptx.so; INPUT: folders or archives of .ptx files
    --ptxas PATH          the assembler; without one the test is skipped
    --architecture NAME   what ptxas assembles for (default sm_90a)
    --sample N --seed S   N kernels drawn by the seed; default: all
    --accept SHARE        the least share of kernels that must be accepted (default 0.995)
    --json FILE           one row a kernel, and the summary
  corpus_ptxas.py --self-test

Without an input it takes ptx/inductor_triton.tar.xz of the folder GPUSHARE_DATA. Exit code 77: skipped. 1: too few kernels
are accepted, a twin does not assemble, or the original's code changes beside its twins.
"""

import argparse
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

WORKERS, SLICE = 2, 4
# An SM of sm_80 to sm_90: registers, those of a warp in units, warps in units, warps, blocks, bytes of shared memory and
# those that the driver takes of each block.
REGISTERS, WARP_UNIT, WARPS_UNIT, WARPS, BLOCKS, SHARED, SHARED_OF_BLOCK = 65536, 256, 4, 64, 32, 233472, 1024
ENTRY = re.compile(r"Compiling entry function '(\S+)'")
USED = re.compile(r'Used (\d+) registers')
SPILLS = re.compile(r'(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads')


class Options(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('forms', ctypes.c_uint32), ('text', ctypes.c_char_p),
                ('text_bytes', ctypes.c_uint64), ('entry', ctypes.c_char_p),
                ('worker_registers_max', ctypes.c_uint32), ('slice_registers_max', ctypes.c_uint32)]


class Facts(ctypes.Structure):
    _fields_ = [('struct_size', ctypes.c_uint32), ('line', ctypes.c_uint32), ('reason', ctypes.c_char_p),
                ('refusal', ctypes.c_char_p), ('module', ctypes.c_char_p), ('module_bytes', ctypes.c_uint64),
                ('entry', ctypes.c_char_p), ('worker_entry', ctypes.c_char_p), ('slice_entry', ctypes.c_char_p),
                ('parameter_count', ctypes.c_uint32), ('parameters_bytes', ctypes.c_uint32),
                ('block_required', ctypes.c_uint32 * 3), ('block_max', ctypes.c_uint32 * 3),
                ('static_shared_bytes', ctypes.c_uint32), ('twin_shared_bytes', ctypes.c_uint32),
                ('dynamic_shared', ctypes.c_uint32), ('early_exits', ctypes.c_uint32),
                ('uses_grid_size', ctypes.c_uint32), ('instructions', ctypes.c_uint32),
                ('needs_flat_block', ctypes.c_uint32), ('reserved', ctypes.c_uint32)]


class Library:
    """libgpushare_ptx.so."""

    def __init__(self, path):
        self.calls = ctypes.CDLL(str(path))
        self.calls.gpushare_twin_create.argtypes = [ctypes.POINTER(Options), ctypes.POINTER(ctypes.c_void_p)]
        self.calls.gpushare_twin_get_facts.argtypes = [ctypes.c_void_p, ctypes.POINTER(Facts)]
        self.calls.gpushare_twin_release.argtypes = [ctypes.c_void_p]
        self.calls.gpushare_twin_entries.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64]
        self.calls.gpushare_twin_entries.restype = ctypes.c_uint64

    def entries(self, text):
        size = self.calls.gpushare_twin_entries(text, len(text), None, 0)
        buffer = ctypes.create_string_buffer(size)
        self.calls.gpushare_twin_entries(text, len(text), buffer, size)
        return buffer.value.decode().split()

    def make(self, text, entry, forms, worker_registers=0, slice_registers=0):
        """A dictionary of facts, the module as bytes, and the milliseconds of processor time."""
        options = Options(ctypes.sizeof(Options), forms, text, len(text), entry.encode(), worker_registers, slice_registers)
        twin, facts = ctypes.c_void_p(), Facts(struct_size=ctypes.sizeof(Facts))
        begin = time.process_time()
        if self.calls.gpushare_twin_create(ctypes.byref(options), ctypes.byref(twin)) != 0:
            raise RuntimeError('gpushare_twin_create fails')
        milliseconds = (time.process_time() - begin) * 1000
        self.calls.gpushare_twin_get_facts(twin, ctypes.byref(facts))
        row = {'reason': facts.reason.decode(), 'line': facts.line, 'refusal': facts.refusal.decode(errors='replace'),
               'worker': facts.worker_entry.decode(), 'slice': facts.slice_entry.decode(),
               'required': list(facts.block_required), 'maximum': list(facts.block_max),
               'twin_shared_bytes': facts.twin_shared_bytes, 'early_exits': facts.early_exits,
               'dynamic_shared': facts.dynamic_shared, 'milliseconds': milliseconds}
        module = facts.module
        self.calls.gpushare_twin_release(twin)
        return row, module


def texts_of(path):
    """(name, text) of each kernel file, sorted by name."""
    if path.is_dir():
        for file in sorted(path.rglob('*.ptx')):
            yield str(file.relative_to(path)), file.read_bytes()
        return
    with tarfile.open(path) as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.name.endswith('.ptx')}
    yield from sorted(files.items())


def repaired(text):
    """The collection lost the declaration of some local depots together with its debug lines."""
    if b'__local_depot' not in text or b'.local .align' in text:
        return text
    names = sorted(set(re.findall(rb'__local_depot\d+', text)))
    begin = text.index(b'\n{', text.index(b'.entry')) + 2
    return text[:begin] + b''.join(b'\n\t.local .align 16 .b8 %s[4096];' % name for name in names) + text[begin:]


def sections(cubin):
    """The code of each function of a cubin, by its name: sections .text.NAME of a 64-bit ELF file."""
    number = int.from_bytes
    table, entry_bytes = number(cubin[0x28:0x30], 'little'), number(cubin[0x3a:0x3c], 'little')
    count, names_index = number(cubin[0x3c:0x3e], 'little'), number(cubin[0x3e:0x40], 'little')
    rows = []
    for i in range(count):
        row = cubin[table + i * entry_bytes:table + (i + 1) * entry_bytes]
        rows.append((number(row[0:4], 'little'), number(row[0x18:0x20], 'little'), number(row[0x20:0x28], 'little')))
    names = rows[names_index][1]
    found = {}
    for name_at, offset, size in rows:
        end = cubin.index(b'\0', names + name_at)
        name = cubin[names + name_at:end].decode()
        if name.startswith('.text.'):
            found[name[len('.text.'):]] = cubin[offset:offset + size]
    return found


class Assembler:
    def __init__(self, ptxas, architecture, folder):
        self.command = [ptxas, '-v', f'-arch={architecture}', '-o', str(folder / 'out.cubin'), str(folder / 'in.ptx')]
        self.folder = folder

    def run(self, text):
        """(functions, code, error): registers and spills of each kernel, its code, and what ptxas says otherwise."""
        (self.folder / 'in.ptx').write_bytes(text)
        done = subprocess.run(self.command, capture_output=True, text=True, errors='replace')
        if done.returncode != 0:
            return {}, {}, done.stdout + done.stderr
        functions, entry = {}, None
        for line in (done.stdout + done.stderr).splitlines():
            if match := ENTRY.search(line):
                entry = functions.setdefault(match.group(1), {})
            elif entry is None:
                continue
            elif match := SPILLS.search(line):
                entry['spill_bytes'] = int(match.group(2)) + int(match.group(3))
            elif match := USED.search(line):
                entry['registers'] = int(match.group(1))
                shared = re.search(r'(\d+) bytes smem', line)
                entry['shared_bytes'] = int(shared.group(1)) if shared else 0
                entry = None
        return functions, sections((self.folder / 'out.cubin').read_bytes()), ''


def workers_of(function, threads):
    """Blocks that fit on an SM, by registers, threads and static shared memory."""
    warps = -(-threads // 32)
    of_warp = -(-function['registers'] * 32 // WARP_UNIT) * WARP_UNIT
    by_registers = REGISTERS // of_warp // WARPS_UNIT * WARPS_UNIT // warps
    by_shared = SHARED // (function['shared_bytes'] + SHARED_OF_BLOCK)
    return min(by_registers, by_shared, WARPS // warps, BLOCKS)


def threads_of(row):
    shape = row['required'] if row['required'][0] else row['maximum']
    return max(1, shape[0] * shape[1] * shape[2]) if shape[0] else 256


def judge(name, text, entry, library, assembler):
    """The row of one kernel."""
    row, module = library.make(text, entry, WORKERS | SLICE)
    row.update(name=name, entry=entry)
    if row['reason'] != 'none':
        return row
    alone, alone_code, error = assembler.run(text)
    if error:
        row['error'] = 'the original does not assemble: ' + error[-300:]
        row['original_error'] = True
        return row
    functions, code, error = assembler.run(module)
    if error:
        row['error'] = error[-300:]
        return row
    threads = threads_of(row)
    row['original'], row['same_code'] = alone[entry], alone_code[entry] == code[entry]
    for form in ('worker', 'slice'):
        function = functions[row[form]]
        function['per_sm'] = workers_of(function, threads)
        row[form + '_function'] = function
    row['original']['per_sm'] = workers_of(row['original'], threads)
    bound = -(-row['original']['registers'] // 8) * 8
    if row['worker_function']['per_sm'] < row['original']['per_sm']:
        _, module = library.make(text, entry, WORKERS, worker_registers=max(bound, 24))
        functions, _, error = assembler.run(module)
        if not error:
            again = functions[row['worker']]
            again['per_sm'] = workers_of(again, threads)
            row['bounded_function'] = again
    return row


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0


def kept(row):
    """The worker that the library keeps: the bounded one unless it spills more."""
    bounded = row.get('bounded_function')
    if bounded and bounded['spill_bytes'] <= row['worker_function']['spill_bytes']:
        return bounded
    return row['worker_function']


def summary_of(rows):
    accepted = [row for row in rows if row['reason'] == 'none']
    done = [row for row in accepted if 'worker_function' in row]
    summary = {'kernels': len(rows), 'accepted': len(accepted), 'assembled': len(done),
               'not assembled': sum('error' in row and not row.get('original_error') for row in accepted),
               'original not assembled': sum(bool(row.get('original_error')) for row in accepted),
               'original changed': sum(not row['same_code'] for row in done),
               'transform ms, mean': round(statistics.fmean(row['milliseconds'] for row in rows), 2) if rows else 0}
    for form in ('worker', 'slice') if done else ():
        grown = [row[form + '_function']['registers'] - row['original']['registers'] for row in done]
        crossed = sum(-(-row[form + '_function']['registers'] // 8) > -(-row['original']['registers'] // 8) for row in done)
        spilled = [row for row in done if row[form + '_function']['spill_bytes'] > row['original']['spill_bytes']]
        summary |= {f'{form}: registers, median': quantile(grown, 0.5), f'{form}: registers, p90': quantile(grown, 0.9),
                    f'{form}: registers, most': max(grown), f'{form}: crosses a unit of 8': crossed,
                    f'{form}: new spills': len(spilled),
                    f'{form}: fewer workers an SM': sum(row[form + '_function']['per_sm'] < row['original']['per_sm'] for row in done)}
    if done:
        summary['worker as kept: fewer workers an SM'] = sum(kept(row)['per_sm'] < row['original']['per_sm'] for row in done)
        summary['worker as kept: new spills'] = sum(kept(row)['spill_bytes'] > row['original']['spill_bytes'] for row in done)
    return summary


def report(rows, summary):
    for key, value in summary.items():
        print(f'{key:44s} {value}')
    for row in rows:
        if row['reason'] != 'none':
            print(f"refused: {row['name']} {row['entry']}: {row['reason']}: {row['refusal']}")
        if 'error' in row:
            print(f"error: {row['name']} {row['entry']}: {row['error']}")


def self_test():
    """What is wrong with the functions above, one sentence each."""
    found = []
    for registers, shared, threads, blocks in ((32, 0, 128, 16), (33, 0, 128, 12), (255, 0, 128, 2), (16, 0, 32, 32),
                                               (168, 0, 384, 1), (32, 49152, 128, 4), (32, 0, 1024, 2), (24, 0, 96, 21)):
        got = workers_of({'registers': registers, 'shared_bytes': shared}, threads)
        if got != blocks:
            found.append(f'{registers} registers, {shared} bytes, {threads} threads: {got} blocks, not {blocks}')

    def row(worker, spill=0, bounded=None, reason='none', same=True):
        function = {'registers': 32, 'spill_bytes': 0, 'per_sm': 8}
        result = {'reason': reason, 'milliseconds': 1, 'same_code': same, 'original': function, 'slice_function': function,
                  'worker_function': {'registers': worker, 'spill_bytes': spill, 'per_sm': 8 if worker <= 32 else 7}}
        if bounded is not None:
            result['bounded_function'] = {'registers': 32, 'spill_bytes': bounded, 'per_sm': 8}
        return result

    summary = summary_of([row(32), row(40), row(40, bounded=0), row(40, bounded=8), row(32, spill=4, same=False),
                          {'reason': 'cluster', 'milliseconds': 1}])
    wanted = {'kernels': 6, 'accepted': 5, 'assembled': 5, 'original changed': 1, 'worker: crosses a unit of 8': 3,
              'worker: new spills': 1, 'worker: fewer workers an SM': 3, 'worker as kept: fewer workers an SM': 2,
              'worker as kept: new spills': 1, 'worker: registers, median': 8, 'slice: registers, most': 0}
    found += [f'{key}: {summary[key]}, not {value}' for key, value in wanted.items() if summary[key] != value]
    text = b'.visible .entry k()\n{\n\tmov.b64 %SPL, __local_depot0;\n}'
    if b'{\n\t.local .align 16 .b8 __local_depot0[4096];\n\tmov' not in repaired(text):
        found.append('a local depot is not declared again')
    return found


def inputs_of(arguments):
    if arguments.inputs:
        return arguments.inputs
    data = os.environ.get('GPUSHARE_DATA', '')
    path = pathlib.Path(data) / 'ptx/inductor_triton.tar.xz'
    if data and path.exists():
        return [path]
    print('[  SKIPPED ] GPUSHARE_DATA names no folder with ptx/inductor_triton.tar.xz')
    sys.exit(77)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('library', type=pathlib.Path, nargs='?')
    parser.add_argument('inputs', nargs='*', type=pathlib.Path)
    parser.add_argument('--ptxas')
    parser.add_argument('--architecture', default='sm_90a')
    parser.add_argument('--sample', type=int, default=0)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--accept', type=float, default=0.995)
    parser.add_argument('--json', type=pathlib.Path)
    parser.add_argument('--self-test', action='store_true')
    arguments = parser.parse_args()
    if arguments.self_test:
        problems = self_test()
        print('\n'.join(problems) or 'The self-test passes.')
        return 1 if problems else 0
    if arguments.library is None:
        parser.error('give the library, or --self-test')
    ptxas = arguments.ptxas or shutil.which('ptxas')
    if not ptxas or not pathlib.Path(ptxas).exists():
        print('[  SKIPPED ] there is no ptxas')
        sys.exit(77)
    kernels = [(name, repaired(text)) for path in inputs_of(arguments) for name, text in texts_of(path)]
    if arguments.sample:
        kernels = random.Random(arguments.seed).sample(kernels, min(arguments.sample, len(kernels)))
    library, rows = Library(arguments.library), []
    with tempfile.TemporaryDirectory() as folder:
        assembler = Assembler(ptxas, arguments.architecture, pathlib.Path(folder))
        for name, text in kernels:
            for entry in library.entries(text) or ['']:
                rows.append(judge(name, text, entry, library, assembler))
    summary = summary_of(rows)
    report(rows, summary)
    if arguments.json:
        arguments.json.write_text(json.dumps({'summary': summary, 'kernels': rows}, indent=1) + '\n')
    good = (rows and summary['accepted'] >= arguments.accept * len(rows) and not summary['not assembled'] and
            not summary['original changed'])
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
