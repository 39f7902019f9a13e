//! A best-effort step beside a latency-critical query, in Rust. It runs on the simulated device in real time, because its
//! kernels are names of the built-in profile and bring no code.

use std::thread::sleep;
use std::time::Duration;

use gpushare::{AppOptions, Error, KernelOptions, Runtime, RuntimeOptions, Task, Verdict, NEVER};

fn main() -> Result<(), Error> {
    let runtime = Runtime::new(&RuntimeOptions::new().device("sim:realtime"))?; // on a GPU "cuda"
    let training = runtime.app(&AppOptions::best_effort("training"))?.queue()?;
    let gradient = runtime.register(&KernelOptions::new("sincos_27us"))?;
    let step = training.submit(Task::of(&gradient).block_tasks(10_000_000))?; // 0.3 s

    let service = AppOptions::latency_critical("service").p99_bound(1.05).p99_alone_ns(2_000_000);
    let queue = runtime.app(&service)?.queue()?;
    let model = runtime.register(&KernelOptions::new("chain1"))?;
    sleep(Duration::from_millis(5)); // the step runs
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
