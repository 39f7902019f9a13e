//! The enums of the C ABI as open types: a newer library may return a value that has no name here.

use gpushare_sys as sys;
use std::ffi::CStr;
use std::fmt;

/// A static string of the library.
pub(crate) fn static_text(text: *const std::os::raw::c_char) -> &'static str {
    // SAFETY: the functions that name values, and the version, return static strings that end with NUL.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("unknown")
}

macro_rules! word {
    ($(#[$note:meta])* $name:ident { $($value:ident = $number:ident),* $(,)? } $(named by $function:ident)?) => {
        $(#[$note])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub i32);

        impl $name {
            $(pub const $value: $name = $name(sys::$number);)*
        }

        $(impl fmt::Display for $name {
            /// The library's word for the value; "unknown" for one that it does not know.
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                // SAFETY: the function takes any number.
                formatter.write_str(static_text(unsafe { sys::$function(self.0) }))
            }
        })?
    };
}

word!(
    /// Why a call failed. `docs/errors.md` says what to do about each.
    Status {
        OK = GPUSHARE_OK, CANCELLED = GPUSHARE_CANCELLED, INVALID_ARGUMENT = GPUSHARE_INVALID_ARGUMENT,
        DEADLINE_EXCEEDED = GPUSHARE_DEADLINE_EXCEEDED, NOT_FOUND = GPUSHARE_NOT_FOUND,
        ALREADY_EXISTS = GPUSHARE_ALREADY_EXISTS, PERMISSION_DENIED = GPUSHARE_PERMISSION_DENIED,
        RESOURCE_EXHAUSTED = GPUSHARE_RESOURCE_EXHAUSTED, FAILED_PRECONDITION = GPUSHARE_FAILED_PRECONDITION,
        ABORTED = GPUSHARE_ABORTED, OUT_OF_RANGE = GPUSHARE_OUT_OF_RANGE, UNIMPLEMENTED = GPUSHARE_UNIMPLEMENTED,
        INTERNAL = GPUSHARE_INTERNAL, UNAVAILABLE = GPUSHARE_UNAVAILABLE, DATA_LOSS = GPUSHARE_DATA_LOSS,
    } named by gpushare_status_name
);
word!(
    /// The class of an app.
    AppClass {
        LATENCY_CRITICAL = GPUSHARE_CLASS_LATENCY_CRITICAL, BEST_EFFORT = GPUSHARE_CLASS_BEST_EFFORT,
    } named by gpushare_app_class_name
);
word!(
    /// What a task is.
    TaskKind {
        DEFAULT = GPUSHARE_TASK_DEFAULT, KERNEL = GPUSHARE_TASK_KERNEL, GRAPH = GPUSHARE_TASK_GRAPH,
        LIBRARY = GPUSHARE_TASK_LIBRARY, MEMCPY = GPUSHARE_TASK_MEMCPY, OPAQUE = GPUSHARE_TASK_OPAQUE,
    } named by gpushare_task_kind_name
);
word!(
    /// How a task was launched.
    Form {
        ORIGINAL = GPUSHARE_FORM_ORIGINAL, WORKERS = GPUSHARE_FORM_WORKERS, SLICE = GPUSHARE_FORM_SLICE,
        FUSED = GPUSHARE_FORM_FUSED, GRAPH = GPUSHARE_FORM_GRAPH, LIBRARY = GPUSHARE_FORM_LIBRARY,
        MEMCPY = GPUSHARE_FORM_MEMCPY, OPAQUE = GPUSHARE_FORM_OPAQUE, SEGMENTS = GPUSHARE_FORM_SEGMENTS,
    } named by gpushare_form_name
);
word!(
    /// How a task ended.
    Verdict {
        PENDING = GPUSHARE_VERDICT_PENDING, OK = GPUSHARE_VERDICT_OK, FAILED = GPUSHARE_VERDICT_FAILED,
        CANCELLED = GPUSHARE_VERDICT_CANCELLED, DROPPED = GPUSHARE_VERDICT_DROPPED,
        TIMED_OUT = GPUSHARE_VERDICT_TIMED_OUT, DEVICE_LOST = GPUSHARE_VERDICT_DEVICE_LOST,
        SHUTDOWN = GPUSHARE_VERDICT_SHUTDOWN,
    } named by gpushare_verdict_name
);
word!(
    /// Why a task was launched, held or evicted: a `GPUSHARE_REASON_` of [`crate::sys`].
    Reason { NONE = GPUSHARE_REASON_NONE } named by gpushare_reason_name
);
word!(
    /// The direction of a copy.
    CopyDirection {
        HOST_TO_DEVICE = GPUSHARE_COPY_HOST_TO_DEVICE, DEVICE_TO_HOST = GPUSHARE_COPY_DEVICE_TO_HOST,
        PEER = GPUSHARE_COPY_PEER,
    }
);
word!(
    /// Who drives the flow: the library's thread, or the caller through [`crate::Runtime::poll`] and waits.
    Drive { THREAD = GPUSHARE_DRIVE_THREAD, POLL = GPUSHARE_DRIVE_POLL }
);
word!(
    /// The weight of a log message.
    LogLevel { ERROR = GPUSHARE_LOG_ERROR, WARNING = GPUSHARE_LOG_WARNING, INFO = GPUSHARE_LOG_INFO }
);
