#!/usr/bin/env python3
"""The example against the simulated device: layouts, a load, the whole measurement.

  example_test.py LIBGPUSHARE_CATALOGUE
"""

import ctypes
import json
import pathlib
import sys
import tempfile
import unittest

import catalogue
import resnet50

import gpushare
from gpushare import abi


def runtime_of():
    return gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL)


class SimulatedModel:
    """Replaces the PyTorch model by the profile's record of the same name."""

    virtual_time = True

    def kernel_spec(self, capture):
        if capture == 'callback':
            raise RuntimeError('The simulated device captures nothing.')
        return gpushare.KernelSpec(resnet50.MODEL, kind=gpushare.TaskKind.GRAPH), None

    def raw_run(self, arrivals_ns):
        done, latencies = 0, []
        for arrival in arrivals_ns:
            done = max(done, arrival) + 870_000
            latencies.append(done - arrival)
        return latencies, max(1, arrivals_ns[-1])

    def poison(self):
        pass

    def verdict(self):
        return 'bitwise'

    def facts(self):
        return {'gpu': 'simulated'}


class ModelThatGoesWrong(SimulatedModel):
    """Gives right results while a capture is chosen, and wrong ones afterwards."""

    def __init__(self):
        self.answers = iter(['tolerance'])

    def verdict(self):
        return next(self.answers, 'wrong')


class SimulatedWork:
    def __init__(self):
        self.kernel = gpushare.KernelSpec(resnet50.KERNEL)
        self.task = abi.init(abi.gpushare_task_options, block_tasks=resnet50.BLOCK_TASKS)

    def clear(self):
        pass

    def verdict(self):
        return 'right'


class Example(unittest.TestCase):

    def measure(self, model):
        report = {}
        with tempfile.TemporaryDirectory() as folder:
            args = resnet50.parse(['--out', str(pathlib.Path(folder) / 'out.json'),
                                   '--device', 'sim', '--queries', '300',
                                   '--calibrate-seconds', '0.1'])
            right = resnet50.measure(args, CATALOGUE, model, SimulatedWork(), report)
        json.dumps(report)
        return right, report, {row['row']: row for row in report['rows']}

    def test_the_whole_example_runs_on_the_simulated_device(self):
        right, report, rows = self.measure(SimulatedModel())
        self.assertTrue(right)
        self.assertEqual(report['capture'], 'keep_graph')
        self.assertIn('captures nothing', report['captures_tried']['callback'])
        self.assertEqual(set(report['calibration']), {'resnet50_b1', 'sincos_27us'})
        for name in ('raw alone', 'library, no BE', 'library + BE, bound 1.20',
                     'library + BE, bound 1.05'):
            self.assertEqual(rows[name]['queries'], 300)
            self.assertLess(rows[name]['p99_over_raw'], 1.3)
        self.assertEqual(rows['BE alone']['be_of_solo'], 1.0)
        self.assertGreater(rows['library + BE, bound 1.20']['be_of_solo'], 0.4)
        self.assertTrue(rows['library + BE, bound 1.20']['lc_places'])

    def test_a_wrong_answer_is_told(self):
        right, report, _ = self.measure(ModelThatGoesWrong())
        self.assertFalse(right)
        self.assertEqual(report['capture'], 'keep_graph')
        self.assertIn('library + BE, bound 1.20', report['wrong_rows'])

    def test_a_load_counts_queries_and_best_effort_work(self):
        with runtime_of() as runtime:
            kernels = [runtime.register_kernel(name) for name in ('resnet50_b1', 'sincos_27us')]
            model = resnet50.lc_task(kernels[0])
            step = abi.init(abi.gpushare_task_options, kernel=kernels[1].handle, block_tasks=105600)
            arrivals = [i * 1_740_000 for i in range(100)]
            service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.2, p99_alone_ns=2_000_000,
                                         solo_ns=870_000)
            training = runtime.create_app('training', gpushare.BEST_EFFORT)
            alone, _ = catalogue.run_load(CATALOGUE, runtime, be=training, be_task=step, span_ns=100_000_000,
                                          virtual_time=True)
            beside, latencies = catalogue.run_load(CATALOGUE, runtime, lc=service, be=training, lc_task=model,
                                                   be_task=step, arrivals_ns=arrivals, virtual_time=True)
            self.assertEqual(beside.lc_queries, 100)
            self.assertEqual(beside.wrong_verdicts, 0)
            self.assertEqual(sum(beside.lc_places), 100)
            self.assertGreater(min(latencies), 500_000)
            self.assertEqual(beside.span_ns, arrivals[-1])
            rate = alone.be_block_tasks / alone.span_ns
            share = beside.be_block_tasks / beside.span_ns / rate
            self.assertGreater(share, 0.3)
            self.assertLess(share, 1.0)

    def test_a_step_that_a_policy_holds_for_ever_ends_with_the_load(self):
        with runtime_of() as runtime:
            runtime.set_policy('baymax')
            kernels = [runtime.register_kernel(name) for name in ('resnet50_b1', 'sincos_27us')]
            service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, target_ns=3_000_000, solo_ns=870_000)
            training = runtime.create_app('training', gpushare.BEST_EFFORT)
            step = abi.init(abi.gpushare_task_options, kernel=kernels[1].handle, block_tasks=2_112_000)  # 30 ms
            load, latencies = catalogue.run_load(CATALOGUE, runtime, lc=service, be=training,
                                                 lc_task=resnet50.lc_task(kernels[0]), be_task=step,
                                                 arrivals_ns=[i * 2_000_000 for i in range(50)], virtual_time=True)
            self.assertEqual((load.lc_queries, load.be_tasks, load.be_block_tasks), (50, 0, 0))
            self.assertLess(max(latencies), 1_500_000)

    def test_a_load_without_a_task_is_refused(self):
        with runtime_of() as runtime:
            options = catalogue.LoadOptions(runtime=runtime.handle, query_count=1)
            with self.assertRaisesRegex(RuntimeError, 'no LC queue'):
                CATALOGUE.make('load_new', ctypes.byref(options))

    def test_a_wrong_layout_is_told(self):
        struct = catalogue.STRUCTS['gpushare_example_load_result']
        catalogue.STRUCTS['gpushare_example_load_result'] = catalogue.LoadOptions
        try:
            with self.assertRaisesRegex(RuntimeError, 'gpushare_example_load_result'):
                CATALOGUE.check_layouts()
        finally:
            catalogue.STRUCTS['gpushare_example_load_result'] = struct


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    CATALOGUE = catalogue.Catalogue(sys.argv[1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
