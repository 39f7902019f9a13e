"""Does with fake tensors what the simulated device only times: copies and graphs, by the records of their tasks.

A task reads its memory when it starts and writes it when it ends, so tasks that overlap wrongly give wrong values.
"""

import fake_torch

import gpushare
from gpushare.app import Queue


class Played:
    """Notes every BE task that is submitted. `graphs`: by the kernel's name, a function that runs the graph."""

    def __init__(self, monkeypatch, graphs):
        self.graphs, self.tasks = graphs, []
        submit = Queue.submit

        def noted(queue, kernel=None, **options):
            kept = [fake_torch.Tensor.at.get(options.get(end)) for end in ('copy_source', 'copy_destination')]
            ticket = submit(queue, kernel, **options)
            self.tasks.append((ticket, kernel, options, *kept))
            return ticket

        monkeypatch.setattr(Queue, 'submit', noted)

    def copies(self):
        return [(options['copy_direction'].name, source, target, options['copy_pageable'])
                for _, kernel, options, source, target in self.tasks if kernel is None]

    def play(self):
        """Waits for the tasks and does their work, in the order of the device's clock."""
        moments = []
        for number, (ticket, kernel, options, source, target) in enumerate(self.tasks):
            ticket.wait_complete()
            record = ticket.record()
            if record.verdict == gpushare.Verdict.OK:
                task = _Graph(self.graphs[kernel.name]) if kernel else _Copy(options, source, target)
                moments += [(record.start_ns, 1, number, task.start), (record.end_ns, 0, number, task.end)]
        self.tasks.clear()
        for *_, work in sorted(moments, key=lambda moment: moment[:3]):
            work()


class _Copy:
    def __init__(self, options, source, target):
        assert options['copy_size_bytes'] == 4 * len(source.values) == 4 * len(target.values)
        self.source, self.target = source, target

    def start(self):
        self.values = list(self.source.values)
        self.target.values[:] = [float('nan')] * len(self.target.values)

    def end(self):
        self.target.values[:] = self.values


class _Graph:
    def __init__(self, run):
        self.start, self.end = run, lambda: None
