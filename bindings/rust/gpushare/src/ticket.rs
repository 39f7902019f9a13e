//! What a submit returns, and the values that a caller begins and ends.

use crate::error::{check, Error};
use crate::handles::Queue;
use crate::words::{Form, Reason, Verdict};
use crate::NEVER;
use gpushare_sys as sys;
use std::ops::Deref;
use std::os::raw::c_void;
use std::os::unix::io::{FromRawFd, OwnedFd};

/// How a task ended: the C struct, with its words as types.
#[derive(Clone, Copy, Debug)]
pub struct Record(sys::gpushare_completion_record);

impl Record {
    pub(crate) fn from_raw(raw: sys::gpushare_completion_record) -> Self {
        Record(raw)
    }

    pub fn verdict(&self) -> Verdict {
        Verdict(self.0.verdict)
    }

    /// The form of the last launch.
    pub fn form(&self) -> Form {
        Form(self.0.form)
    }

    pub fn launch_reason(&self) -> Reason {
        Reason(self.0.launch_reason)
    }

    /// Why it last waited; [`Reason::NONE`]: it never did.
    pub fn hold_reason(&self) -> Reason {
        Reason(self.0.hold_reason)
    }

    /// From the submit to the completion.
    pub fn latency_ns(&self) -> i64 {
        self.0.complete_ns - self.0.submit_ns
    }
}

impl Deref for Record {
    type Target = sys::gpushare_completion_record;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// One submitted task. It keeps its queue, because the library drops tickets with their app. A drop gives the ticket
/// back; the task goes on.
#[derive(Debug)]
pub struct Ticket {
    queue: Queue,
    value: sys::gpushare_ticket,
}

impl Ticket {
    pub(crate) fn new(queue: Queue, value: sys::gpushare_ticket) -> Self {
        Ticket { queue, value }
    }

    pub(crate) fn value(&self) -> sys::gpushare_ticket {
        self.value
    }

    /// Waits until the task is complete, however it ended.
    pub fn wait(&self) -> Result<(), Error> {
        self.wait_until(NEVER)
    }

    /// Waits until `deadline_ns` at most; past it the error is `DEADLINE_EXCEEDED`, and the task goes on.
    pub fn wait_until(&self, deadline_ns: i64) -> Result<(), Error> {
        // SAFETY: handles and tickets are looked up by the library, here and below.
        check(unsafe { sys::gpushare_ticket_wait(self.queue.runtime().as_ptr(), self.value, deadline_ns) })
    }

    pub fn is_complete(&self) -> Result<bool, Error> {
        let mut complete = 0;
        check(unsafe { sys::gpushare_ticket_poll(self.queue.runtime().as_ptr(), self.value, &mut complete) })?;
        Ok(complete == 1)
    }

    /// The record of a complete task.
    pub fn record(&self) -> Result<Record, Error> {
        let mut record = Default::default();
        check(unsafe { sys::gpushare_ticket_record(self.queue.runtime().as_ptr(), self.value, &mut record) })?;
        Ok(Record(record))
    }

    /// Asks the library not to run the task, or to evict it.
    pub fn cancel(&self) -> Result<(), Error> {
        check(unsafe { sys::gpushare_ticket_cancel(self.queue.runtime().as_ptr(), self.value) })
    }

    /// A Linux eventfd that becomes readable when the task is complete, for event loops.
    pub fn event_fd(&self) -> Result<OwnedFd, Error> {
        let mut fd = -1;
        check(unsafe { sys::gpushare_ticket_eventfd(self.queue.runtime().as_ptr(), self.value, &mut fd) })?;
        // SAFETY: the library gave the descriptor away.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        unsafe { sys::gpushare_ticket_release(self.queue.runtime().as_ptr(), self.value) };
    }
}

/// An LC request of several tasks. A drop ends it; its tasks go on.
#[derive(Debug)]
pub struct Query {
    queue: Queue,
    value: sys::gpushare_query,
}

impl Query {
    pub(crate) fn new(queue: Queue, value: sys::gpushare_query) -> Self {
        Query { queue, value }
    }

    pub(crate) fn value(&self) -> sys::gpushare_query {
        self.value
    }

    /// Says that the query gets no more tasks.
    pub fn end(mut self) -> Result<(), Error> {
        self.end_once()
    }

    fn end_once(&mut self) -> Result<(), Error> {
        let value = std::mem::take(&mut self.value);
        if value.value == 0 {
            return Ok(());
        }
        check(unsafe { sys::gpushare_query_end(self.queue.runtime().as_ptr(), value) })
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let _ = self.end_once();
    }
}

/// Work that the caller enqueues on a stream of the library, between begin and end. A drop ends it.
#[derive(Debug)]
pub struct Region {
    ticket: Option<Ticket>,
    stream: *mut c_void,
}

// SAFETY: the stream is a CUDA handle, which any thread may use.
unsafe impl Send for Region {}
unsafe impl Sync for Region {}

impl Region {
    pub(crate) fn new(ticket: Ticket, stream: *mut c_void) -> Self {
        Region { ticket: Some(ticket), stream }
    }

    /// A `cudaStream_t`; null on simulated devices.
    pub fn stream(&self) -> *mut c_void {
        self.stream
    }

    /// Says that nothing more is enqueued. The ticket completes when the stream has done its work. An error gives the
    /// region back, to be ended again: too many launches are in flight.
    pub fn end(mut self) -> Result<Ticket, (Region, Error)> {
        match self.end_once() {
            Ok(()) => match self.ticket.take() {
                Some(ticket) => Ok(ticket),
                None => unreachable!("a region has its ticket until it ends"),
            },
            Err(error) => Err((self, error)),
        }
    }

    fn end_once(&self) -> Result<(), Error> {
        match &self.ticket {
            Some(ticket) => check(unsafe { sys::gpushare_region_end(ticket.queue.runtime().as_ptr(), ticket.value) }),
            None => Ok(()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        let _ = self.end_once();
    }
}
