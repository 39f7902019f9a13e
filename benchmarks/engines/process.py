#!/usr/bin/env python3
"""A BE job in a process of its own: what users have without gpushare, by time slicing, or by MPS where it is on.

As a program it is the child: it makes the job, says 'ready', runs the job's graph between the lines 'run' and 'stop' of
its input, and answers 'stop' with the ends of its steps on the clock that both processes have.

  process.py JOB
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import subprocess
import sys
from types import TracebackType

READY_S = 120.0  # of a child: PyTorch, the job, its compilation


class JobProcess:
    """The child as its parent sees it. Within a with block its job runs; then `ends_ns` are the ends of its steps."""

    def __init__(self, job: str, environment: dict[str, str]) -> None:
        self.ends_ns: list[int] = []
        self._child = subprocess.Popen([sys.executable, __file__, job], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True, env={**os.environ, **environment})
        self._expect('ready')

    def _ask(self, word: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(word + '\n')
        self._child.stdin.flush()

    def _expect(self, word: str) -> str:
        assert self._child.stdout is not None
        # An answer is one line, and each is read before the next word: nothing is left in the reader's buffer.
        if not select.select([self._child.stdout], [], [], READY_S)[0]:
            self._child.kill()
            self._child.wait()
            raise TimeoutError(f"The job's process gave no '{word}' within {READY_S:.0f} s.")
        line = self._child.stdout.readline()
        if not line.startswith(word):
            raise RuntimeError(f"The job's process answered {line!r} in place of '{word}'.")
        return line[len(word):]

    def __enter__(self) -> JobProcess:
        self._ask('run')
        self._expect('running')
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._ask('stop')
        self.ends_ns = json.loads(self._expect('ended'))

    def within(self, begin_ns: int, end_ns: int) -> int:
        """Steps that ended in the window."""
        return sum(begin_ns <= end < end_ns for end in self.ends_ns)

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(READY_S)


def child(job: str) -> None:
    sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what libraries print is no answer
    import jobs
    import torch
    from baselines import captured
    from beside import Launched

    step = jobs.made(job)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    launch = step if job in jobs.EAGER else captured(step, stream).replay
    print('ready', file=answers, flush=True)
    for line in sys.stdin:
        if line.strip() != 'run':
            continue
        with Launched(launch, stream) as feeder:
            print('running', file=answers, flush=True)
            sys.stdin.readline()  # 'stop'
        print('ended' + json.dumps(feeder.ends_ns), file=answers, flush=True)


if __name__ == '__main__':
    child(sys.argv[1])
