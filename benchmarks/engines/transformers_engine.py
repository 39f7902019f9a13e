#!/usr/bin/env python3
"""transformers' continuous batching alone and beside BE jobs, on bare PyTorch and through the library.

  transformers_engine.py [--model 1b] [--jobs lora,vit] [--conditions bare,library,library:1.05] [--out FILE] ...

The options, the table and the JSON are those of engines.py; the engine is a Llama with random weights behind
transformers' ContinuousBatchingManager (5.17), with attention 'paged|sdpa' and graphs of 64 to 256 tokens. Its steps go
through examples/llm's StepGraph. Conditions: bare, library, library:BOUND, streams, process. A step of it decodes
unless its name begins with p. After each run of the library the first second of the requests is served again with
snapshots of each step, and bare PyTorch replays them: tokens that differ are counted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import engines
from plan import Condition

WAYS = ('bare', 'library', 'streams', 'process')


def refused(conditions: Sequence[Condition]) -> list[str]:
    """Conditions that this engine has not: its loop and its streams are not the benchmark's."""
    return sorted({one.way for one in conditions if one.way not in WAYS})


class TransformersBench(engines.Bench):
    library: Any = None

    def measure(self) -> bool:
        try:
            return super().measure()
        finally:
            if hasattr(self, 'engine'):
                self.engine.close()  # its thread would keep the process alive

    def build(self) -> None:
        from continuous import Served
        self.engine = Served(self.given.model)

    def register(self) -> Any:
        """The runtime. Steps are registered when the engine captures them."""
        from through import Steps
        self.library = Steps(self.engine, self.given.latency)
        return self.library

    def ready(self) -> None:
        """Starts the engine, behind the jobs: what is captured from here on is a step."""
        from through import registered
        with self.phases.phase('start of the engine'), registered(self.report, self.library):
            self.times_ns = self.engine.start()
        self.report['step_times_us'] = {name: round(time / 1e3, 1) for name, time in self.times_ns.items()}

    def rounds_of(self, *given: Any) -> Any:
        from through import TransformersRounds
        return TransformersRounds(*given)

    def finish(self, made: dict[str, Any], library: Any) -> bool:
        self.engine.close()
        return super().finish(made, library)


def main() -> int:
    given = engines.parsed()
    wrong = refused(given.conditions)
    if wrong or given.prefill != 'graph' or given.gaps != 'learnt':
        print(f"transformers' engine has no {', '.join(wrong) or '--prefill eager and no --gaps stated'}.",
              file=sys.stderr)
        return 2
    return engines.run(given, TransformersBench)


if __name__ == '__main__':
    sys.exit(main())
