#!/usr/bin/env python3
"""The binding against the simulated device: layouts, one query, errors, a load, a calibration.

  binding_test.py LIBGPUSHARE LIBGPUSHARE_CATALOGUE
"""

import ctypes
import json
import pathlib
import sys
import tempfile
import unittest

import gpushare
import resnet50


def runtime_of(**fields):
    return gpushare.Runtime(LIBRARY, device=b'sim', drive=gpushare.DRIVE_POLL, **fields)


def kernel_of(runtime, name):
    return runtime.register(gpushare.init(gpushare.KernelOptions, name=name))


class Captures:
    failure, sizes = '', []

    def release(self):
        pass


class SimulatedModel:
    """Replaces the PyTorch model by the profile's record of the same name."""

    virtual_time = True

    def kernel_options(self, capture):
        if capture == 'callback':
            raise RuntimeError('The simulated device captures nothing.')
        return gpushare.init(gpushare.KernelOptions, name=resnet50.MODEL.encode(),
                             kind=gpushare.TASK_GRAPH), Captures()

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
        self.kernel = gpushare.init(gpushare.KernelOptions, name=resnet50.KERNEL.encode())
        self.task = gpushare.init(gpushare.TaskOptions, block_tasks=resnet50.BLOCK_TASKS)

    def clear(self):
        pass

    def verdict(self):
        return 'right'


class Binding(unittest.TestCase):

    def measure(self, model):
        report = {}
        with tempfile.TemporaryDirectory() as folder:
            args = resnet50.parse(['--out', str(pathlib.Path(folder) / 'out.json'),
                                   '--device', 'sim', '--queries', '300',
                                   '--calibrate-seconds', '0.1'])
            right = resnet50.measure(args, LIBRARY, model, SimulatedWork(), report)
        json.dumps(report)
        return right, report, {row['row']: row for row in report['rows']}

    def test_the_whole_example_runs_on_the_simulated_device(self):
        right, report, rows = self.measure(SimulatedModel())
        self.assertTrue(right)
        self.assertEqual(report['capture'], 'callback_context')
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
        self.assertEqual(report['capture'], 'callback_context')
        self.assertIn('library + BE, bound 1.20', report['wrong_rows'])

    def test_a_query_completes_and_its_record_reads_in_order(self):
        with runtime_of() as runtime:
            self.assertEqual(runtime.info().sm_count, 132)
            self.assertEqual(runtime.info().policy, b'adaptive')
            with gpushare.App(runtime, gpushare.LATENCY_CRITICAL, 'service',
                              p99_bound=1.2) as service:
                kernel = kernel_of(runtime, b'resnet50_b1')
                task = gpushare.init(gpushare.TaskOptions, kernel=kernel)
                ticket = gpushare.u64()
                abi = LIBRARY.abi
                LIBRARY.check(abi.gpushare_submit_lc(service.queue, gpushare.address(task),
                                                     ctypes.byref(ticket)))
                LIBRARY.check(abi.gpushare_ticket_wait(runtime.handle, ticket, gpushare.NEVER))
                record = gpushare.init(gpushare.CompletionRecord)
                LIBRARY.check(abi.gpushare_ticket_record(runtime.handle, ticket,
                                                         gpushare.address(record)))
                LIBRARY.check(abi.gpushare_ticket_release(runtime.handle, ticket))
            self.assertEqual(record.verdict, gpushare.VERDICT_OK)
            self.assertEqual(record.ticket, ticket.value)
            self.assertLess(record.submit_ns, record.start_ns)
            self.assertLess(record.start_ns, record.end_ns)
            self.assertLessEqual(record.end_ns, record.complete_ns)

    def test_an_error_brings_the_sentence_of_the_library(self):
        with runtime_of() as runtime:
            with self.assertRaisesRegex(gpushare.Error, r'INVALID_ARGUMENT: .*-1'):
                gpushare.App(runtime, gpushare.LATENCY_CRITICAL, 'service', p99_bound=-1)
        with self.assertRaisesRegex(gpushare.Error, 'INVALID_ARGUMENT'):
            runtime_of(policy=b'no_such_policy')

    def test_a_load_counts_queries_and_best_effort_work(self):
        with runtime_of() as runtime:
            model = gpushare.init(gpushare.TaskOptions, kernel=kernel_of(runtime, b'resnet50_b1'))
            step = gpushare.init(gpushare.TaskOptions, kernel=kernel_of(runtime, b'sincos_27us'),
                                 block_tasks=105600)
            arrivals = [i * 1_740_000 for i in range(100)]
            with gpushare.App(runtime, gpushare.LATENCY_CRITICAL, 'service', p99_bound=1.2,
                              p99_alone_ns=2_000_000, solo_ns=870_000) as service, \
                    gpushare.App(runtime, gpushare.BEST_EFFORT, 'training') as training:
                alone, _ = gpushare.run_load(runtime, be=training, be_task=step,
                                             span_ns=100_000_000, virtual_time=True)
                beside, latencies = gpushare.run_load(
                    runtime, lc=service, be=training, lc_task=model, be_task=step,
                    arrivals_ns=arrivals, virtual_time=True)
            self.assertEqual(beside.lc_queries, 100)
            self.assertEqual(beside.wrong_verdicts, 0)
            self.assertEqual(sum(beside.lc_places), 100)
            self.assertGreater(min(latencies), 500_000)
            self.assertEqual(beside.span_ns, arrivals[-1])
            rate = alone.be_block_tasks / alone.span_ns
            share = beside.be_block_tasks / beside.span_ns / rate
            self.assertGreater(share, 0.3)
            self.assertLess(share, 1.0)

    def test_a_load_without_a_task_is_refused(self):
        with runtime_of() as runtime:
            options = gpushare.LoadOptions(runtime=runtime.handle, query_count=1)
            with self.assertRaisesRegex(gpushare.Error, 'no LC queue'):
                LIBRARY.make_example(LIBRARY.example.gpushare_example_load_new,
                                     gpushare.address(options))

    def test_calibration_writes_a_profile_and_reports(self):
        seen = []

        def report(progress):
            if progress.kernel:
                kernel = ctypes.cast(progress.kernel,
                                     ctypes.POINTER(gpushare.KernelCalibration)).contents
                points = ctypes.cast(kernel.speed, ctypes.POINTER(gpushare.SpeedPoint))
                seen.append((kernel.name, points[kernel.speed_count - 1].sms, kernel.solo_ns))

        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / 'profile.json')
            model = gpushare.init(gpushare.KernelOptions, name=b'resnet50_b1',
                                  kind=gpushare.TASK_GRAPH)
            LIBRARY.calibrate(path, [(model, None)], report, device=b'sim',
                              kernel_time_ns=100_000_000)
            self.assertEqual([(name, sms) for name, sms, _ in seen], [(b'resnet50_b1', 132)])
            self.assertGreater(seen[0][2], 500_000)
            LIBRARY.check(LIBRARY.abi.gpushare_profile_validate(path.encode()))
            profile = json.loads(pathlib.Path(path).read_text())
            names = [kernel['name'] for kernel in profile['kernels']]
            self.assertIn('resnet50_b1', names)

    def test_a_wrong_layout_is_told(self):
        size = gpushare.STRUCTS['gpushare_speed_point']
        gpushare.STRUCTS['gpushare_speed_point'] = gpushare.LatencySummary
        try:
            with self.assertRaisesRegex(gpushare.Error, 'gpushare_speed_point'):
                LIBRARY.check_layouts()
        finally:
            gpushare.STRUCTS['gpushare_speed_point'] = size


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    LIBRARY = gpushare.Library(sys.argv[1], sys.argv[2])
    unittest.main(argv=sys.argv[:1], verbosity=2)
