//! A best-effort step beside a latency-critical query, in Rust. Without a GPU it runs simulated. With one, set
//! GPUSHARE_DEVICE=sim: its kernels are names of the built-in profile and bring no code.

use gpushare::{AppOptions, Error, KernelOptions, Runtime, RuntimeOptions, Task, Verdict, NEVER};

fn main() -> Result<(), Error> {
    let runtime = Runtime::new(&RuntimeOptions::new())?;
    let training = runtime.app(&AppOptions::best_effort("training"))?.queue()?;
    let gradient = runtime.register(&KernelOptions::new("sincos_27us"))?;
    let step = training.submit(Task::of(&gradient).block_tasks(100_000))?;

    let service = AppOptions::latency_critical("service").p99_bound(1.05).p99_alone_ns(2_000_000);
    let queue = runtime.app(&service)?.queue()?;
    let model = runtime.register(&KernelOptions::new("chain1"))?;
    let query = queue.submit(Task::of(&model))?; // on the device before it returns
    query.wait()?;
    let record = query.record()?;
    println!("query: {} in {} us", record.verdict(), record.latency_ns() / 1000);

    step.wait()?;
    println!("training step: evicted {} times", step.record()?.evictions);
    runtime.shutdown(NEVER)?;
    assert_eq!(record.verdict(), Verdict::OK);
    Ok(())
}
