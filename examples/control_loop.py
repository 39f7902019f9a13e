#!/usr/bin/env python3
"""A control loop beside perception and training on one GPU, with bounds (docs/partition-planner.md).

It runs on the simulated device in virtual time, so that it needs no GPU. On one, measure the worst cases there.
"""

import gpushare

MS = 1_000_000
# Name, period, deadline, block tasks of a job, and its longest time by SMs: the maximum of many runs.
JOBS = [('control', 2 * MS, 1_500_000, 2_000, [(8, 1_050_000), (16, 560_000)]),
        ('perception', 33 * MS, 30 * MS, 100_000, [(16, 26 * MS), (32, 14 * MS)])]


def main():
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.POLL, policy='partitioned') as runtime:
        kernel = runtime.register_kernel('sincos_27us')
        apps = [(runtime.create_app(name, gpushare.LATENCY_CRITICAL, period_ns=period_ns, deadline_ns=deadline_ns,
                                    worst_cases=worst_cases), period_ns, block_tasks)
                for name, period_ns, deadline_ns, block_tasks, worst_cases in JOBS]
        training = runtime.create_app('training', gpushare.BEST_EFFORT)
        plan = runtime.plan_partitions()  # gpushare.ResourceExhaustedError says why where the jobs do not fit
        print(f'{plan.partitions} partitions of {plan.partition_sms} SMs, {plan.rest_sms} for training')
        step = training.submit(kernel, block_tasks=20_000_000)
        for now_ns in range(0, 500 * MS, MS):
            runtime.poll_until(now_ns)
            for app, period_ns, block_tasks in apps:
                if now_ns % period_ns == 0:
                    app.submit(kernel, block_tasks=block_tasks)
        runtime.drain(1)
        for app, _, _ in apps:
            got = app.guarantee()
            print(f'{app.name}: {got.jobs} jobs on {got.partition_sms} SMs, {got.deadlines_missed} late; longest '
                  f'{got.response_ns_max / MS:.2f} ms of the bound {got.response_bound_ns / MS:.2f} ms')
        print(f'training: {step.record().measured_ns / MS:.0f} ms of work in {runtime.now_ns() / MS:.0f} ms')


if __name__ == '__main__':
    main()
