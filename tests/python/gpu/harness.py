"""Runs the cases of a check on a GPU: the methods of its class that take nothing and have names of several words.

Importing it skips the check (exit code 77) where there is no GPU or no PyTorch.
"""

import argparse
import faulthandler
import inspect
import json
import os
import pathlib
import sys
import time
import traceback

# cuBLAS gives the same bits in every run only with a fixed workspace; read when its handle is made.
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')

try:
    import torch
except ImportError:
    print('skipped: PyTorch is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('skipped: PyTorch sees no GPU')
    sys.exit(77)

import gpushare


def cases_of(checks_of):
    """The names of the cases, in the order of the class."""
    return [name for name, value in vars(checks_of).items()
            if inspect.isfunction(value) and '_' in name.strip('_') and not name.startswith('_')
            and list(inspect.signature(value).parameters) == ['self']]


def main(checks_of, text):
    """Runs the cases of checks_of(seconds). Returns the exit code: 0, or 1 if a case failed."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='')
    parser.add_argument('--seconds', type=float, default=10, help='of the measured case')
    parser.add_argument('--limit-s', type=float, default=600, help='then it says where each thread is, and ends')
    arguments = parser.parse_args()
    faulthandler.dump_traceback_later(arguments.limit_s, exit=True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    checks, failed = checks_of(arguments.seconds), []
    cases = cases_of(checks_of)
    for name in cases:
        began = time.monotonic()
        try:
            getattr(checks, name)()
            state = 'ok'
        except Exception:
            state = 'FAILED'
            failed.append(name)
            traceback.print_exc()
        checks.figures[name] = state
        print(f'{state:6} {time.monotonic() - began:6.1f} s  {name}', flush=True)
    checks.figures.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__, library=gpushare.version())
    for key, value in checks.figures.items():
        print(f'  {key}: {value}')
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(checks.figures, indent=1) + '\n')
    faulthandler.cancel_dump_traceback_later()
    print(f'{len(cases) - len(failed)} of {len(cases)} cases passed')
    return 1 if failed else 0
