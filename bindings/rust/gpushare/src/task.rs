//! One task, to be submitted to a queue.

use crate::callbacks::{Closures, Enqueue};
use crate::handles::Kernel;
use crate::ticket::{Query, Record, Ticket};
use crate::words::{CopyDirection, TaskKind};
use gpushare_sys as sys;
use std::marker::PhantomData;
use std::os::raw::c_void;

/// One task: of a registered kernel, a copy, or work that a closure enqueues.
pub struct Task<'a> {
    raw: sys::gpushare_task_options,
    after: Vec<sys::gpushare_ticket>,
    closures: Closures,
    borrowed: PhantomData<&'a ()>,
}

impl<'a> Task<'a> {
    fn empty() -> Self {
        Task { raw: Default::default(), after: Vec::new(), closures: Closures::default(), borrowed: PhantomData }
    }

    /// A task of a registered kernel, graph or library call.
    pub fn of(kernel: &'a Kernel) -> Self {
        let mut task = Self::empty();
        task.raw.kernel = kernel.as_ptr();
        task
    }

    /// A copy of `size_bytes` between host and device.
    ///
    /// # Safety
    /// Both buffers must be valid for the copy until the task is complete. On the simulated device they may be null.
    pub unsafe fn copy(to: *mut c_void, from: *const c_void, size_bytes: i64, direction: CopyDirection) -> Self {
        let mut task = Self::empty();
        task.raw.kind = TaskKind::MEMCPY.0;
        task.raw.copy_destination = to;
        task.raw.copy_source = from;
        task.raw.copy_size_bytes = size_bytes;
        task.raw.copy_direction = direction.0;
        task
    }

    /// Work that `closure` enqueues on a `cudaStream_t`, which is null on simulated devices. The closure runs once, or
    /// never if the task is never launched. It must enqueue and return, and must not call the library. An `Err` fails
    /// the task.
    pub fn enqueued_by(closure: impl FnOnce(*mut c_void) -> Result<(), String> + Send + 'static) -> Self {
        let mut task = Self::empty();
        task.raw.kind = TaskKind::OPAQUE.0;
        task.closures.enqueue = Some(Box::new(closure) as Enqueue);
        task
    }

    /// Number of blocks of the original grid.
    pub fn block_tasks(mut self, count: i64) -> Self {
        self.raw.block_tasks = count;
        self
    }

    /// The kernel's packed arguments, which are copied at submit.
    pub fn arguments(mut self, bytes: &'a [u8]) -> Self {
        self.raw.arguments = bytes.as_ptr() as *const c_void;
        self.raw.arguments_size_bytes = bytes.len() as u64;
        self
    }

    /// LC: the query that the task belongs to; without one it is a query by itself.
    pub fn query(mut self, query: &'a Query) -> Self {
        self.raw.query = query.value();
        self
    }

    /// LC without a query: when the request was meant to arrive.
    pub fn arrival_ns(mut self, time_ns: i64) -> Self {
        self.raw.arrival_ns = time_ns;
        self
    }

    /// Bound on the device time of a library call or of enqueued work.
    pub fn declared_ns(mut self, duration_ns: i64) -> Self {
        self.raw.declared_ns = duration_ns;
        self
    }

    /// LC: the app's next query comes within this time of the end of this one.
    pub fn next_within_ns(mut self, duration_ns: i64) -> Self {
        self.raw.next_within_ns = duration_ns;
        self
    }

    /// The task starts when the ticket's task has ended with [`crate::Verdict::OK`]; at most 8 tickets.
    pub fn after(mut self, ticket: &'a Ticket) -> Self {
        self.after.push(ticket.value());
        self
    }

    /// Runs `closure` once, when the task is complete, on the thread that drives the flow. It may submit and release. It
    /// must not wait. If the submit fails, it does not run.
    pub fn on_complete(mut self, closure: impl FnOnce(&Record) + Send + 'static) -> Self {
        self.closures.completion = Some(Box::new(closure));
        self
    }

    /// Submits by `submit`, a C function. The closures are given away where it accepts the task.
    pub(crate) fn submit_by(
        self,
        submit: impl FnOnce(&sys::gpushare_task_options) -> sys::gpushare_status,
    ) -> sys::gpushare_status {
        let Task { mut raw, after, closures, .. } = self;
        if !after.is_empty() {
            raw.wait_tickets = after.as_ptr();
            raw.wait_ticket_count = after.len() as u32;
        }
        if closures.enqueue.is_none() && closures.completion.is_none() {
            return submit(&raw);
        }
        if closures.enqueue.is_some() {
            raw.enqueue = Some(crate::callbacks::enqueue);
        }
        raw.callback = Some(crate::callbacks::complete);
        let given = Box::into_raw(Box::new(closures));
        raw.enqueue_user = given as *mut c_void;
        raw.callback_user = given as *mut c_void;
        if raw.enqueue.is_none() {
            raw.enqueue_user = std::ptr::null_mut();
        }
        let code = submit(&raw);
        if code != sys::GPUSHARE_OK {
            // SAFETY: nothing was accepted, so no callback runs and the box is ours again.
            drop(unsafe { Box::from_raw(given) });
        }
        code
    }
}
