//! Options structs as builders. A method that is not called leaves the field's default.

use crate::callbacks::LogClosure;
use crate::words::{AppClass, Drive, LogLevel, TaskKind};
use gpushare_sys as sys;
use std::ffi::CString;
use std::os::raw::c_char;
use std::sync::Arc;

/// A string for C. One with a NUL inside ends there, and the library then judges what is left.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

macro_rules! setters {
    ($($(#[$note:meta])* $name:ident: $kind:ty),* $(,)?) => {
        $($(#[$note])* pub fn $name(mut self, $name: $kind) -> Self {
            self.raw.$name = $name.into();
            self
        })*
    };
}

/// Options of a runtime.
#[derive(Clone, Default)]
pub struct RuntimeOptions {
    raw: sys::gpushare_runtime_options,
    device: Option<CString>,
    policy: Option<CString>,
    profile_path: Option<CString>,
    sim_tier: Option<CString>,
    sim_faults: Option<CString>,
    log: Option<Arc<LogClosure>>,
}

// SAFETY: the raw struct holds no pointers; raw() fills them in for one call.
unsafe impl Send for RuntimeOptions {}
unsafe impl Sync for RuntimeOptions {}

impl RuntimeOptions {
    pub fn new() -> Self {
        Self::default()
    }

    /// "auto", "cuda", "sim" or "null"; without it `GPUSHARE_DEVICE` says, else "auto".
    pub fn device(mut self, name: &str) -> Self {
        self.device = Some(c_text(name));
        self
    }

    pub fn policy(mut self, name: &str) -> Self {
        self.policy = Some(c_text(name));
        self
    }

    pub fn profile_path(mut self, path: &str) -> Self {
        self.profile_path = Some(c_text(path));
        self
    }

    /// Detail of the simulated device: "kernel" or "block".
    pub fn sim_tier(mut self, tier: &str) -> Self {
        self.sim_tier = Some(c_text(tier));
        self
    }

    /// Faults of the simulated device, for tests (`docs/abi.md`).
    pub fn sim_faults(mut self, faults: &str) -> Self {
        self.sim_faults = Some(c_text(faults));
        self
    }

    pub fn drive(mut self, drive: Drive) -> Self {
        self.raw.drive = drive.0;
        self
    }

    /// Receives log messages, on any thread. It must not call the library. The closure lives until the process ends,
    /// because a thread of the library may still log after the last handle is gone.
    pub fn log(mut self, closure: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.log = Some(Arc::new(Box::new(closure)));
        self
    }

    setters! {
        seed: u64, device_ordinal: i32, splits_max: i32, hang_floor_ns: i64, hang_factor: f64,
        be_return_hysteresis_ns: i64, shutdown_timeout_ns: i64, caller_spin_ns: i64,
    }

    /// The C struct. Its pointers live as long as `self`; the log closure is given away.
    pub(crate) fn raw(&self) -> sys::gpushare_runtime_options {
        let mut raw = self.raw;
        raw.device = pointer(&self.device);
        raw.policy = pointer(&self.policy);
        raw.profile_path = pointer(&self.profile_path);
        raw.sim_tier = pointer(&self.sim_tier);
        raw.sim_faults = pointer(&self.sim_faults);
        if let Some(closure) = &self.log {
            raw.log = Some(crate::callbacks::log);
            raw.log_user = Arc::into_raw(Arc::clone(closure)) as *mut _;
        }
        raw
    }
}

/// Options of an app.
#[derive(Clone, Debug)]
pub struct AppOptions {
    raw: sys::gpushare_app_options,
    name: CString,
}

// SAFETY: as of RuntimeOptions.
unsafe impl Send for AppOptions {}
unsafe impl Sync for AppOptions {}

impl AppOptions {
    pub fn latency_critical(name: &str) -> Self {
        Self::of(name, AppClass::LATENCY_CRITICAL)
    }

    pub fn best_effort(name: &str) -> Self {
        Self::of(name, AppClass::BEST_EFFORT)
    }

    fn of(name: &str, class: AppClass) -> Self {
        let raw = sys::gpushare_app_options { app_class: class.0, ..Default::default() };
        AppOptions { raw, name: c_text(name) }
    }

    setters! {
        target_ns: i64,
        /// LC: most p99 over p99 alone, 1.05 = 5 % more.
        p99_bound: f64,
        p99_alone_ns: i64, p50_bound: f64, solo_ns: i64,
        /// BE: share of device time among BE apps with work.
        weight: f64,
        drop_late: bool, tasks_max: i32, idle_timeout_ns: i64, priority: i32, yield_ns_max: i64, bounds_tokens: bool,
    }

    pub(crate) fn raw(&self) -> sys::gpushare_app_options {
        sys::gpushare_app_options { name: self.name.as_ptr(), ..self.raw }
    }
}

/// What an update of an app changes: what a method was called for.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppUpdate {
    pub(crate) raw: sys::gpushare_app_update_options,
}

macro_rules! updates {
    ($($name:ident: $kind:ty = $bit:ident),* $(,)?) => {
        $(pub fn $name(mut self, $name: $kind) -> Self {
            self.raw.$name = $name;
            self.raw.fields |= sys::$bit;
            self
        })*
    };
}

impl AppUpdate {
    pub fn new() -> Self {
        Self::default()
    }

    updates! {
        target_ns: i64 = GPUSHARE_APP_FIELD_TARGET_NS, p99_bound: f64 = GPUSHARE_APP_FIELD_P99_BOUND,
        p50_bound: f64 = GPUSHARE_APP_FIELD_P50_BOUND, p99_alone_ns: i64 = GPUSHARE_APP_FIELD_P99_ALONE_NS,
        weight: f64 = GPUSHARE_APP_FIELD_WEIGHT, priority: i32 = GPUSHARE_APP_FIELD_PRIORITY,
    }
}

/// How a kernel behaves on the simulated device.
#[derive(Clone, Debug, Default)]
pub struct SimulationRecord {
    raw: sys::gpushare_simulation_record,
    speed: Vec<sys::gpushare_speed_point>,
    nodes: Vec<sys::gpushare_graph_node>,
}

// SAFETY: as of RuntimeOptions.
unsafe impl Send for SimulationRecord {}
unsafe impl Sync for SimulationRecord {}

impl SimulationRecord {
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        block_task_ns: i64, block_task_spread: f64, worker_overhead: f64, memory_parallelism: f64,
        saturating_occupancy: f64, node_gap_ns: i64, demand: sys::gpushare_resource_demand,
    }

    /// Relative speeds by the number of SMs, ascending.
    pub fn speed(mut self, points: &[(i32, f64)]) -> Self {
        let point = |&(sms, speed): &(i32, f64)| sys::gpushare_speed_point { sms, reserved: 0, speed };
        self.speed = points.iter().map(point).collect();
        self
    }

    /// The nodes of a graph.
    pub fn nodes(mut self, nodes: &[sys::gpushare_graph_node]) -> Self {
        self.nodes = nodes.to_vec();
        self
    }

    fn raw(&self) -> sys::gpushare_simulation_record {
        let mut raw = self.raw;
        if !self.speed.is_empty() {
            raw.speed = self.speed.as_ptr();
            raw.speed_count = self.speed.len() as u32;
        }
        if !self.nodes.is_empty() {
            raw.nodes = self.nodes.as_ptr();
            raw.node_count = self.nodes.len() as u32;
        }
        raw
    }
}

/// A kernel, graph or library call to register.
#[derive(Clone, Debug)]
pub struct KernelOptions {
    raw: sys::gpushare_kernel_options,
    name: CString,
    simulation: Option<SimulationRecord>,
}

fn choice(yes: bool) -> sys::gpushare_choice {
    if yes {
        sys::GPUSHARE_CHOICE_YES
    } else {
        sys::GPUSHARE_CHOICE_NO
    }
}

impl KernelOptions {
    /// Without more, the kernel of this name in the runtime's profile.
    pub fn new(name: &str) -> Self {
        KernelOptions { raw: Default::default(), name: c_text(name), simulation: None }
    }

    pub fn kind(mut self, kind: TaskKind) -> Self {
        self.raw.kind = kind.0;
        self
    }

    pub fn evictable(mut self, yes: bool) -> Self {
        self.raw.evictable = choice(yes);
        self
    }

    pub fn confinable(mut self, yes: bool) -> Self {
        self.raw.confinable = choice(yes);
        self
    }

    pub fn simulation(mut self, record: SimulationRecord) -> Self {
        self.simulation = Some(record);
        self
    }

    setters! {
        threads_per_block: i32, registers_per_thread: i32, shared_memory_bytes: i32, workers_per_sm_max: i32,
        yield_interval_ns: i64, solo_ns: i64, dynamic_shared_memory_bytes: i32, segment_ns: i64,
    }

    /// The C struct, for CUDA functions and graphs, and for what has no method here.
    ///
    /// # Safety
    /// Every pointer that you set must be valid for the registration. Functions and graphs must live until the last task
    /// that uses them is complete, and must agree with the arguments of those tasks.
    pub unsafe fn raw_mut(&mut self) -> &mut sys::gpushare_kernel_options {
        &mut self.raw
    }

    /// Calls `use_it` with the C struct.
    pub(crate) fn with_raw<T>(&self, use_it: impl FnOnce(&sys::gpushare_kernel_options) -> T) -> T {
        let simulation = self.simulation.as_ref().map(SimulationRecord::raw);
        let mut raw = self.raw;
        raw.name = self.name.as_ptr();
        if let Some(record) = &simulation {
            raw.simulation = record;
        }
        use_it(&raw)
    }
}
