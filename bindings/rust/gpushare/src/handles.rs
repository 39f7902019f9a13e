//! Runtime, app, queue and kernel: counted references of the C library.

use crate::error::{check, Error};
use crate::options::{c_text, AppOptions, AppUpdate, KernelOptions, RuntimeOptions};
use crate::task::Task;
use crate::ticket::{Query, Region, Ticket};
use crate::words::{static_text, Status};
use gpushare_sys as sys;
use std::ffi::CStr;
use std::os::raw::c_char;
use std::ptr::{null_mut, NonNull};

/// The release of the loaded library, "major.minor.patch".
pub fn version() -> &'static str {
    // SAFETY: the string is static.
    static_text(unsafe { sys::gpushare_version_string() })
}

macro_rules! handle {
    ($(#[$note:meta])* $name:ident: $raw:ident, $retain:ident, $release:ident) => {
        $(#[$note])*
        #[derive(Debug, PartialEq, Eq)]
        pub struct $name(NonNull<sys::$raw>);

        // SAFETY: the library's functions on handles may be called by any thread, several at once.
        unsafe impl Send for $name {}
        unsafe impl Sync for $name {}

        impl $name {
            /// The one reference that a function has just given the caller.
            fn owned(raw: *mut sys::$raw) -> Result<Self, Error> {
                let no_handle = || Error::new(Status::INTERNAL, "The library returned no handle.");
                NonNull::new(raw).map($name).ok_or_else(no_handle)
            }

            /// The C handle, for functions of [`crate::sys`]. It lives as long as `self`.
            pub fn as_ptr(&self) -> *mut sys::$raw {
                self.0.as_ptr()
            }
        }

        impl Clone for $name {
            fn clone(&self) -> Self {
                // SAFETY: the handle has a reference of ours.
                unsafe { sys::$retain(self.as_ptr()) };
                $name(self.0)
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: as of clone. A release that the library refuses leaves the object as it is.
                unsafe { sys::$release(self.as_ptr()) };
            }
        }
    };
}

handle!(
    /// One device with its scheduler.
    Runtime: gpushare_runtime, gpushare_runtime_retain, gpushare_runtime_release
);
handle!(
    /// The C handle of an app.
    RawApp: gpushare_app, gpushare_app_retain, gpushare_app_release
);
handle!(
    /// A registered kernel, graph or library call.
    Kernel: gpushare_kernel, gpushare_kernel_retain, gpushare_kernel_release
);
handle!(
    /// The C handle of a queue.
    RawQueue: gpushare_queue, gpushare_queue_retain, gpushare_queue_release
);

/// Reads the text of a text function, which says how large its buffer must be.
fn read_text(text: impl Fn(*mut c_char, usize, *mut usize) -> sys::gpushare_status) -> Result<String, Error> {
    let mut buffer: Vec<u8> = Vec::new();
    // The text may grow between the two calls.
    for _ in 0..4 {
        let mut size = 0;
        let start = if buffer.is_empty() { null_mut() } else { buffer.as_mut_ptr() as *mut c_char };
        let code = text(start, buffer.len(), &mut size);
        if code == sys::GPUSHARE_OK && !buffer.is_empty() {
            buffer.truncate(size.saturating_sub(1));
            return Ok(String::from_utf8_lossy(&buffer).into_owned());
        }
        if code != sys::GPUSHARE_OK && code != sys::GPUSHARE_OUT_OF_RANGE {
            check(code)?;
        }
        buffer.resize(size + 64, 0);
    }
    Err(Error::new(Status::ABORTED, "The text grows faster than it is read."))
}

impl Runtime {
    /// Opens a device and starts its scheduler.
    pub fn new(options: &RuntimeOptions) -> Result<Self, Error> {
        // SAFETY: no argument.
        let found = unsafe { sys::gpushare_abi_version() };
        if found != sys::GPUSHARE_ABI_VERSION {
            let message = format!("The loaded libgpushare has ABI {found}, and this crate knows 1.");
            return Err(Error::new(Status::UNIMPLEMENTED, message));
        }
        let mut raw = null_mut();
        // SAFETY: what the struct points to lives in `options`.
        check(unsafe { sys::gpushare_runtime_create(&options.raw(), &mut raw) })?;
        Runtime::owned(raw)
    }

    pub fn app(&self, options: &AppOptions) -> Result<App, Error> {
        let mut raw = null_mut();
        let struct_ = options.raw();
        check(unsafe { sys::gpushare_app_create(self.as_ptr(), &struct_, &mut raw) })?;
        let lc = struct_.app_class == sys::GPUSHARE_CLASS_LATENCY_CRITICAL;
        Ok(App { raw: RawApp::owned(raw)?, runtime: self.clone(), lc })
    }

    /// Registers a kernel, a graph or a library call.
    pub fn register(&self, options: &KernelOptions) -> Result<Kernel, Error> {
        let mut raw = null_mut();
        options
            .with_raw(|struct_| check(unsafe { sys::gpushare_kernel_register(self.as_ptr(), struct_, &mut raw) }))?;
        Kernel::owned(raw)
    }

    /// Refuses new work, runs every accepted task, and returns when each has completed and its closure has ended.
    pub fn shutdown(&self, deadline_ns: i64) -> Result<(), Error> {
        check(unsafe { sys::gpushare_runtime_shutdown(self.as_ptr(), deadline_ns) })
    }

    /// Waits until no task is pending.
    pub fn drain(&self, deadline_ns: i64) -> Result<(), Error> {
        check(unsafe { sys::gpushare_runtime_drain(self.as_ptr(), deadline_ns) })
    }

    /// Holds new launches, evicts BE work and waits until the device is idle, before a synchronisation by the caller.
    pub fn quiesce(&self, deadline_ns: i64) -> Result<(), Error> {
        check(unsafe { sys::gpushare_runtime_quiesce(self.as_ptr(), deadline_ns) })
    }

    /// Ends a quiesce.
    pub fn resume(&self) -> Result<(), Error> {
        check(unsafe { sys::gpushare_runtime_resume(self.as_ptr()) })
    }

    /// Drives the flow once and says whether anything happened. For [`crate::Drive::POLL`], one thread at a time.
    pub fn poll(&self) -> Result<bool, Error> {
        let mut progress = 0;
        check(unsafe { sys::gpushare_poll(self.as_ptr(), &mut progress) })?;
        Ok(progress == 1)
    }

    /// Drives the flow until the device clock reaches `time_ns`. For [`crate::Drive::POLL`], one thread at a time.
    pub fn poll_until(&self, time_ns: i64) -> Result<(), Error> {
        check(unsafe { sys::gpushare_poll_until(self.as_ptr(), time_ns) })
    }

    /// The device's clock.
    pub fn now_ns(&self) -> Result<i64, Error> {
        let mut time_ns = 0;
        check(unsafe { sys::gpushare_now_ns(self.as_ptr(), &mut time_ns) })?;
        Ok(time_ns)
    }

    pub fn set_policy(&self, name: &str) -> Result<(), Error> {
        check(unsafe { sys::gpushare_set_policy(self.as_ptr(), c_text(name).as_ptr()) })
    }

    /// Whether the device is simulated, and "cuda", "sim" or "null".
    pub fn device(&self) -> Result<(bool, String), Error> {
        let mut info = Default::default();
        check(unsafe { sys::gpushare_device_info_get(self.as_ptr(), &mut info) })?;
        // SAFETY: the name lives as long as the library.
        let name = unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned();
        Ok((info.simulated == 1, name))
    }

    pub fn stats(&self) -> Result<sys::gpushare_runtime_stats, Error> {
        let mut stats = Default::default();
        check(unsafe { sys::gpushare_runtime_stats_get(self.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    /// All counters as OpenMetrics text.
    pub fn metrics(&self) -> Result<String, Error> {
        read_text(|buffer, size, out| unsafe { sys::gpushare_metrics_text(self.as_ptr(), buffer, size, out) })
    }

    /// The names of the kernels in the runtime's profile.
    pub fn profile_kernel_names(&self) -> Result<Vec<String>, Error> {
        let text = read_text(|buffer, size, out| unsafe {
            sys::gpushare_profile_kernel_names(self.as_ptr(), buffer, size, out)
        })?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// An owner of work, LC or BE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    raw: RawApp, // released before its runtime: fields are dropped in order
    runtime: Runtime,
    lc: bool,
}

impl App {
    /// The C handle, for functions of [`crate::sys`]. It lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::gpushare_app {
        self.raw.as_ptr()
    }

    /// A queue: a FIFO of the app's tasks.
    pub fn queue(&self) -> Result<Queue, Error> {
        let mut raw = null_mut();
        check(unsafe { sys::gpushare_queue_create(self.as_ptr(), &mut raw) })?;
        Ok(Queue { raw: RawQueue::owned(raw)?, runtime: self.runtime.clone(), lc: self.lc })
    }

    /// Changes what the app states, as after a model swap.
    pub fn update(&self, update: &AppUpdate) -> Result<(), Error> {
        check(unsafe { sys::gpushare_app_update(self.as_ptr(), &update.raw) })
    }

    /// LC: reserves CapSMs. BE: bounds them. `packed`: on whole SMs that no other app uses. 0 removes it.
    pub fn reserve(&self, capsms: i32, packed: bool) -> Result<(), Error> {
        let options = sys::gpushare_reservation_options { capsms, packed: packed.into(), ..Default::default() };
        check(unsafe { sys::gpushare_reserve_capsm(self.as_ptr(), &options) })
    }

    pub fn stats(&self) -> Result<sys::gpushare_app_stats, Error> {
        let mut stats = Default::default();
        check(unsafe { sys::gpushare_app_stats_get(self.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    /// What the app was promised and what it got.
    pub fn guarantee(&self) -> Result<sys::gpushare_app_guarantee, Error> {
        let mut guarantee = Default::default();
        check(unsafe { sys::gpushare_app_guarantee_get(self.as_ptr(), &mut guarantee) })?;
        Ok(guarantee)
    }
}

/// A FIFO of an app's tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    raw: RawQueue,
    runtime: Runtime,
    lc: bool,
}

impl Queue {
    /// The C handle, for functions of [`crate::sys`]. It lives as long as `self`.
    pub fn as_ptr(&self) -> *mut sys::gpushare_queue {
        self.raw.as_ptr()
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Submits a task. One of an LC app is on the device before the call returns, if its lane is free; one of a BE app
    /// runs when and where the policy finds room.
    pub fn submit(&self, task: Task<'_>) -> Result<Ticket, Error> {
        let mut ticket = sys::gpushare_ticket::default();
        check(task.submit_by(|options| self.submit_raw(options, &mut ticket)))?;
        Ok(Ticket::new(self.clone(), ticket))
    }

    /// Submits a task that nobody waits for. Its closure still runs.
    pub fn submit_detached(&self, task: Task<'_>) -> Result<(), Error> {
        check(task.submit_by(|options| self.submit_raw(options, null_mut())))
    }

    fn submit_raw(&self, options: &sys::gpushare_task_options, out: *mut sys::gpushare_ticket) -> sys::gpushare_status {
        // SAFETY: the struct and what it points to live for the call; `out` may be null.
        unsafe {
            if self.lc {
                sys::gpushare_submit_lc(self.as_ptr(), options, out)
            } else {
                sys::gpushare_submit_be(self.as_ptr(), options, out)
            }
        }
    }

    /// Begins an LC request of several tasks. Its latency counts from `arrival_ns`; 0: now.
    pub fn begin_query(&self, arrival_ns: i64) -> Result<Query, Error> {
        let mut query = Default::default();
        check(unsafe { sys::gpushare_query_begin(self.as_ptr(), arrival_ns, &mut query) })?;
        Ok(Query::new(self.clone(), query))
    }

    /// Begins a region: a stream on which the caller enqueues any work. `bound_ns` bounds its device time, 0 as the last
    /// regions of the queue; the call waits for `wait_ns` at most where the region may not start now.
    pub fn begin_region(&self, bound_ns: i64, wait_ns: i64) -> Result<Region, Error> {
        let options = sys::gpushare_region_options { bound_ns, wait_ns, ..Default::default() };
        let (mut ticket, mut stream) = (sys::gpushare_ticket::default(), null_mut());
        check(unsafe { sys::gpushare_region_begin(self.as_ptr(), &options, &mut ticket, &mut stream) })?;
        Ok(Region::new(Ticket::new(self.clone(), ticket), stream))
    }
}
