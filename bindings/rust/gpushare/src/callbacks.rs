//! Closures behind the callbacks of the C ABI. No panic crosses into C: one that leaves a closure ends there, after the
//! panic hook has printed it.

use crate::ticket::Record;
use crate::words::LogLevel;
use gpushare_sys as sys;
use std::ffi::CStr;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

pub(crate) type LogClosure = Box<dyn Fn(LogLevel, &str) + Send + Sync>;
pub(crate) type Completion = Box<dyn FnOnce(&Record) + Send>;
pub(crate) type Enqueue = Box<dyn FnOnce(*mut c_void) -> Result<(), String> + Send>;

pub(crate) unsafe extern "C" fn log(user: *mut c_void, level: sys::gpushare_log_level, message: *const c_char) {
    // SAFETY: `user` is the closure that RuntimeOptions::raw gave away, which lives for ever.
    let closure = unsafe { &*(user as *const LogClosure) };
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    let _ = catch_unwind(AssertUnwindSafe(|| closure(LogLevel(level), &message)));
}

/// The closures of one task. The completion callback runs exactly once and frees them, so that an enqueue closure that
/// never runs is freed too.
#[derive(Default)]
pub(crate) struct Closures {
    pub(crate) enqueue: Option<Enqueue>,
    pub(crate) completion: Option<Completion>,
}

pub(crate) unsafe extern "C" fn complete(user: *mut c_void, record: *const sys::gpushare_completion_record) {
    // SAFETY: `user` is the box that the accepted submit gave away; this callback runs once.
    let closures = unsafe { Box::from_raw(user as *mut Closures) };
    let record = Record::from_raw(unsafe { *record });
    let _ = catch_unwind(AssertUnwindSafe(move || {
        let Closures { enqueue, completion } = *closures;
        drop(enqueue);
        if let Some(completion) = completion {
            completion(&record);
        }
    }));
}

pub(crate) unsafe extern "C" fn enqueue(stream: *mut c_void, user: *mut c_void) {
    // SAFETY: the box lives until the completion callback, which runs later than this one.
    let closure = unsafe { (*(user as *mut Closures)).enqueue.take() };
    let result = catch_unwind(AssertUnwindSafe(|| closure.map_or(Ok(()), |closure| closure(stream))));
    let reason = match result {
        Ok(Ok(())) => return,
        Ok(Err(reason)) => reason,
        Err(_) => "the closure panicked".to_owned(),
    };
    let reason = crate::options::c_text(&reason);
    // SAFETY: this thread is inside an enqueue callback.
    unsafe { sys::gpushare_enqueue_fail(reason.as_ptr()) };
}
