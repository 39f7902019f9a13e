//! Latency-critical (LC) and best-effort (BE) work on one GPU, from one process: the safe API over `gpushare-sys`.
//!
//! ```no_run
//! use gpushare::{AppOptions, KernelOptions, Runtime, RuntimeOptions, Task};
//!
//! # fn main() -> Result<(), gpushare::Error> {
//! let runtime = Runtime::new(&RuntimeOptions::new().device("sim"))?;
//! let service = runtime.app(&AppOptions::latency_critical("service").p99_bound(1.05))?;
//! let queue = service.queue()?;
//! let model = runtime.register(&KernelOptions::new("chain1"))?;
//! let ticket = queue.submit(Task::of(&model))?;
//! ticket.wait()?;
//! println!("{} in {} ns", ticket.record()?.verdict(), ticket.record()?.latency_ns());
//! # Ok(())
//! # }
//! ```
//!
//! - Errors. A call returns `Result<_, Error>`; an [`Error`] has the status and the library's sentence.
//! - Handles. [`Runtime`], [`App`], [`Queue`] and [`Kernel`] count references: a clone retains, a drop releases, in any
//!   order. A queue keeps its app, and an app its runtime. A queue or app that is dropped while its tasks run stays until
//!   the process ends, so wait for them, or call [`Runtime::shutdown`], first.
//! - Values. [`Ticket`], [`Query`] and [`Region`] own one value each. They keep their queue, and a drop gives the value
//!   back.
//! - Threads. All of these are `Send` and `Sync`. Closures may run on the library's thread, so they are `Send`.
//! - Time is in nanoseconds, and deadlines are absolute on the clock that [`Runtime::now_ns`] reads.

// An unsafe function needs unsafe blocks all the same; without this Rust 1.63 warns of each.
#![deny(unsafe_op_in_unsafe_fn)]

mod callbacks;
mod error;
mod handles;
mod options;
mod task;
mod ticket;
mod words;

pub use error::Error;
pub use gpushare_sys as sys;
pub use handles::{version, App, Kernel, Queue, Runtime};
pub use options::{AppOptions, AppUpdate, KernelOptions, RuntimeOptions, SimulationRecord};
pub use task::Task;
pub use ticket::{Query, Record, Region, Ticket};
pub use words::{AppClass, CopyDirection, Drive, Form, LogLevel, Reason, Status, TaskKind, Verdict};

/// A time that never comes. As a deadline: wait without limit.
pub const NEVER: i64 = sys::GPUSHARE_NEVER;
