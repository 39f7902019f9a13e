"""A user's program that mypy --strict checks (tools/test.sh) and nobody runs: wrong calls must be errors.

An ignore that is not needed is an error too, so that each line below that has one fails without it.
"""

import asyncio
import concurrent.futures

import gpushare


async def serve(service: gpushare.App, model: gpushare.Kernel) -> int:
    record = await service.submit(model)
    return record.complete_ns - record.submit_ns


def main() -> None:
    with gpushare.Runtime(device='sim', drive=gpushare.Drive.THREAD) as runtime:
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05, drop_late=True)
        model: gpushare.Kernel = runtime.register_kernel('chain1', kind=gpushare.TaskKind.GRAPH)
        future: concurrent.futures.Future[gpushare.CompletionRecord] = service.submit(model).future()
        verdict: gpushare.Verdict = future.result().verdict
        name: str = runtime.device().name
        held: dict[gpushare.Reason, int] = service.guarantee().held_ns
        print(held)
        print(verdict.name, name, asyncio.run(serve(service, model)))

        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p98_bound=1.05)  # type: ignore[call-arg]
        runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound='1.05')  # type: ignore[arg-type]
        runtime.create_app('service', 1)  # type: ignore[arg-type]
        runtime.register_kernel('chain1', kind='graph')  # type: ignore[arg-type]
        service.queue.submit(model, block_tasks=1.5)  # type: ignore[arg-type]
        service.submit(model, block_tasks=1.5)  # type: ignore[arg-type]
        service.submit(model, block_task=1)  # type: ignore[call-arg]
        wrong: int = runtime.device().name  # type: ignore[assignment]
        print(wrong, runtime.device().no_such_field)  # type: ignore[attr-defined]
