//! The C ABI of gpushare under its C names. `gpushare.h` documents each function, struct and value.

// Written by bindings/rust/generate.py from abi.json. Do not edit.

use core::ffi::c_void;
use std::os::raw::{c_char, c_int};

pub type gpushare_status = i32;
pub type gpushare_bool = i32;
pub type gpushare_choice = i32;
pub type gpushare_app_class = i32;
pub type gpushare_task_kind = i32;
pub type gpushare_form = i32;
pub type gpushare_copy_direction = i32;
pub type gpushare_verdict = i32;
pub type gpushare_reason = i32;
pub type gpushare_log_level = i32;
pub type gpushare_drive = i32;
pub type gpushare_latency = i32;
pub type gpushare_library_operation = i32;
pub type gpushare_data_type = i32;
pub type gpushare_library_mode = i32;
pub type gpushare_event_type = i32;
pub type gpushare_intensity = i32;
pub type gpushare_place_algorithm = i32;
pub type gpushare_place_together = i32;
pub type gpushare_lane_class = i32;
pub type gpushare_segments_run = i32;
pub type gpushare_choice_kind = i32;

#[repr(C)]
pub struct gpushare_runtime {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct gpushare_app {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct gpushare_queue {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct gpushare_kernel {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct gpushare_fused_kernel {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct gpushare_event_log {
    _opaque: [u8; 0],
}

pub const GPUSHARE_ABI_VERSION: u32 = 1;
pub const GPUSHARE_VERSION_MAJOR: i64 = 0;
pub const GPUSHARE_VERSION_MINOR: i64 = 1;
pub const GPUSHARE_VERSION_PATCH: i64 = 0;
pub const GPUSHARE_NEVER: i64 = 9223372036854775807;
pub const GPUSHARE_HOLD_REASONS: usize = 32;
pub const GPUSHARE_NO_NEXT: i64 = -1;
pub const GPUSHARE_NO_GPU: i64 = -1;
pub const GPUSHARE_POLICY_VERSION: i64 = 1;
pub const GPUSHARE_PLAN_ACTIONS_MAX: i64 = 128;
pub const GPUSHARE_PARTS_MAX: usize = 4;
pub const GPUSHARE_CO_SCHEDULE_RATIOS: usize = 3;
pub const GPUSHARE_COST_MODEL_VERSION: i64 = 1;

pub const GPUSHARE_OK: gpushare_status = 0;
pub const GPUSHARE_CANCELLED: gpushare_status = 1;
pub const GPUSHARE_UNKNOWN: gpushare_status = 2;
pub const GPUSHARE_INVALID_ARGUMENT: gpushare_status = 3;
pub const GPUSHARE_DEADLINE_EXCEEDED: gpushare_status = 4;
pub const GPUSHARE_NOT_FOUND: gpushare_status = 5;
pub const GPUSHARE_ALREADY_EXISTS: gpushare_status = 6;
pub const GPUSHARE_PERMISSION_DENIED: gpushare_status = 7;
pub const GPUSHARE_RESOURCE_EXHAUSTED: gpushare_status = 8;
pub const GPUSHARE_FAILED_PRECONDITION: gpushare_status = 9;
pub const GPUSHARE_ABORTED: gpushare_status = 10;
pub const GPUSHARE_OUT_OF_RANGE: gpushare_status = 11;
pub const GPUSHARE_UNIMPLEMENTED: gpushare_status = 12;
pub const GPUSHARE_INTERNAL: gpushare_status = 13;
pub const GPUSHARE_UNAVAILABLE: gpushare_status = 14;
pub const GPUSHARE_DATA_LOSS: gpushare_status = 15;
pub const GPUSHARE_UNAUTHENTICATED: gpushare_status = 16;

pub const GPUSHARE_CHOICE_DEFAULT: gpushare_choice = 0;
pub const GPUSHARE_CHOICE_YES: gpushare_choice = 1;
pub const GPUSHARE_CHOICE_NO: gpushare_choice = 2;

pub const GPUSHARE_CLASS_LATENCY_CRITICAL: gpushare_app_class = 1;
pub const GPUSHARE_CLASS_BEST_EFFORT: gpushare_app_class = 2;

pub const GPUSHARE_TASK_DEFAULT: gpushare_task_kind = 0;
pub const GPUSHARE_TASK_KERNEL: gpushare_task_kind = 1;
pub const GPUSHARE_TASK_GRAPH: gpushare_task_kind = 2;
pub const GPUSHARE_TASK_LIBRARY: gpushare_task_kind = 3;
pub const GPUSHARE_TASK_MEMCPY: gpushare_task_kind = 4;
pub const GPUSHARE_TASK_OPAQUE: gpushare_task_kind = 5;

pub const GPUSHARE_FORM_ORIGINAL: gpushare_form = 0;
pub const GPUSHARE_FORM_WORKERS: gpushare_form = 1;
pub const GPUSHARE_FORM_SLICE: gpushare_form = 2;
pub const GPUSHARE_FORM_FUSED: gpushare_form = 3;
pub const GPUSHARE_FORM_GRAPH: gpushare_form = 4;
pub const GPUSHARE_FORM_LIBRARY: gpushare_form = 5;
pub const GPUSHARE_FORM_MEMCPY: gpushare_form = 6;
pub const GPUSHARE_FORM_OPAQUE: gpushare_form = 7;
pub const GPUSHARE_FORM_SEGMENTS: gpushare_form = 8;

pub const GPUSHARE_COPY_NONE: gpushare_copy_direction = 0;
pub const GPUSHARE_COPY_HOST_TO_DEVICE: gpushare_copy_direction = 1;
pub const GPUSHARE_COPY_DEVICE_TO_HOST: gpushare_copy_direction = 2;
pub const GPUSHARE_COPY_PEER: gpushare_copy_direction = 3;

pub const GPUSHARE_VERDICT_PENDING: gpushare_verdict = 0;
pub const GPUSHARE_VERDICT_OK: gpushare_verdict = 1;
pub const GPUSHARE_VERDICT_FAILED: gpushare_verdict = 2;
pub const GPUSHARE_VERDICT_CANCELLED: gpushare_verdict = 3;
pub const GPUSHARE_VERDICT_DROPPED: gpushare_verdict = 4;
pub const GPUSHARE_VERDICT_TIMED_OUT: gpushare_verdict = 5;
pub const GPUSHARE_VERDICT_DEVICE_LOST: gpushare_verdict = 6;
pub const GPUSHARE_VERDICT_SHUTDOWN: gpushare_verdict = 7;

pub const GPUSHARE_REASON_NONE: gpushare_reason = 0;
pub const GPUSHARE_REASON_LC_FIRST: gpushare_reason = 1;
pub const GPUSHARE_REASON_FAST_PATH: gpushare_reason = 2;
pub const GPUSHARE_REASON_BASELINE: gpushare_reason = 3;
pub const GPUSHARE_REASON_IDLE_DEVICE: gpushare_reason = 4;
pub const GPUSHARE_REASON_FITS_HEADROOM: gpushare_reason = 5;
pub const GPUSHARE_REASON_FITS_BLOCKING_BUDGET: gpushare_reason = 6;
pub const GPUSHARE_REASON_BESIDE_PARTITION: gpushare_reason = 7;
pub const GPUSHARE_REASON_ELASTIC_RETURN: gpushare_reason = 8;
pub const GPUSHARE_REASON_RESUME: gpushare_reason = 9;
pub const GPUSHARE_REASON_QUOTA: gpushare_reason = 10;
pub const GPUSHARE_REASON_FILLS_GAP: gpushare_reason = 11;
pub const GPUSHARE_REASON_TAIL_CREDIT: gpushare_reason = 12;
pub const GPUSHARE_REASON_CO_RESIDENT: gpushare_reason = 13;
pub const GPUSHARE_REASON_HOLD_HEADROOM: gpushare_reason = 32;
pub const GPUSHARE_REASON_HOLD_BLOCKING: gpushare_reason = 33;
pub const GPUSHARE_REASON_HOLD_LC_ACTIVE: gpushare_reason = 34;
pub const GPUSHARE_REASON_HOLD_QUEUED_TIME: gpushare_reason = 35;
pub const GPUSHARE_REASON_HOLD_COPIES: gpushare_reason = 36;
pub const GPUSHARE_REASON_HOLD_WINDOW: gpushare_reason = 37;
pub const GPUSHARE_REASON_HOLD_CAPSM: gpushare_reason = 38;
pub const GPUSHARE_REASON_HOLD_HYSTERESIS: gpushare_reason = 39;
pub const GPUSHARE_REASON_HOLD_QUIESCED: gpushare_reason = 40;
pub const GPUSHARE_REASON_HOLD_LANE: gpushare_reason = 41;
pub const GPUSHARE_REASON_HOLD_PARTS: gpushare_reason = 42;
pub const GPUSHARE_REASON_HOLD_RUNNING: gpushare_reason = 43;
pub const GPUSHARE_REASON_HOLD_COUNTERS: gpushare_reason = 44;
pub const GPUSHARE_REASON_HOLD_LAUNCHES: gpushare_reason = 45;
pub const GPUSHARE_REASON_HOLD_PLAN: gpushare_reason = 48;
pub const GPUSHARE_REASON_HOLD_TAIL_CREDIT: gpushare_reason = 49;
pub const GPUSHARE_REASON_HOLD_DUTY: gpushare_reason = 50;
pub const GPUSHARE_REASON_HOLD_LC_PRIORITY: gpushare_reason = 51;
pub const GPUSHARE_REASON_EVICT_FOR_LC: gpushare_reason = 64;
pub const GPUSHARE_REASON_EVICT_FOR_RESERVATION: gpushare_reason = 65;
pub const GPUSHARE_REASON_EVICT_FOR_LAYOUT: gpushare_reason = 66;
pub const GPUSHARE_REASON_EVICT_FOR_QUOTA: gpushare_reason = 67;
pub const GPUSHARE_REASON_EVICT_FOR_LC_PRIORITY: gpushare_reason = 68;
pub const GPUSHARE_REASON_USER_POLICY: gpushare_reason = 96;
pub const GPUSHARE_REASON_DEPENDENCY_FAILED: gpushare_reason = 128;

pub const GPUSHARE_LOG_ERROR: gpushare_log_level = 1;
pub const GPUSHARE_LOG_WARNING: gpushare_log_level = 2;
pub const GPUSHARE_LOG_INFO: gpushare_log_level = 3;

pub const GPUSHARE_DRIVE_THREAD: gpushare_drive = 0;
pub const GPUSHARE_DRIVE_POLL: gpushare_drive = 1;

pub const GPUSHARE_LATENCY_DEFAULT: gpushare_latency = 0;
pub const GPUSHARE_LATENCY_BALANCED: gpushare_latency = 1;
pub const GPUSHARE_LATENCY_SPIN: gpushare_latency = 2;

pub const GPUSHARE_APP_FIELD_TARGET_NS: u32 = 1;
pub const GPUSHARE_APP_FIELD_P99_BOUND: u32 = 2;
pub const GPUSHARE_APP_FIELD_P50_BOUND: u32 = 4;
pub const GPUSHARE_APP_FIELD_P99_ALONE_NS: u32 = 8;
pub const GPUSHARE_APP_FIELD_WEIGHT: u32 = 16;
pub const GPUSHARE_APP_FIELD_PRIORITY: u32 = 32;

pub const GPUSHARE_LIBRARY_MATMUL: gpushare_library_operation = 1;
pub const GPUSHARE_LIBRARY_CONVOLUTION: gpushare_library_operation = 2;
pub const GPUSHARE_LIBRARY_POOLING: gpushare_library_operation = 3;
pub const GPUSHARE_LIBRARY_ACTIVATION: gpushare_library_operation = 4;
pub const GPUSHARE_LIBRARY_SOFTMAX: gpushare_library_operation = 5;

pub const GPUSHARE_FLOAT32: gpushare_data_type = 0;
pub const GPUSHARE_FLOAT16: gpushare_data_type = 1;
pub const GPUSHARE_BFLOAT16: gpushare_data_type = 2;

pub const GPUSHARE_MODE_DEFAULT: gpushare_library_mode = 0;
pub const GPUSHARE_MODE_MAX_POOLING: gpushare_library_mode = 1;
pub const GPUSHARE_MODE_AVERAGE_POOLING: gpushare_library_mode = 2;
pub const GPUSHARE_MODE_RELU: gpushare_library_mode = 3;
pub const GPUSHARE_MODE_TANH: gpushare_library_mode = 4;
pub const GPUSHARE_MODE_SIGMOID: gpushare_library_mode = 5;

pub const GPUSHARE_PTX_FORM_WORKERS: u32 = 2;
pub const GPUSHARE_PTX_FORM_SLICE: u32 = 4;
pub const GPUSHARE_PTX_FORM_GRAPH_NODES: u32 = 65536;

pub const GPUSHARE_GUARANTEE_EVICTABLE: u32 = 1;
pub const GPUSHARE_GUARANTEE_CONFINABLE: u32 = 2;
pub const GPUSHARE_GUARANTEE_TIMESTAMPED: u32 = 4;
pub const GPUSHARE_GUARANTEE_DIVISIBLE: u32 = 8;

pub const GPUSHARE_EVENT_NONE: gpushare_event_type = 0;
pub const GPUSHARE_EVENT_APP_CREATED: gpushare_event_type = 1;
pub const GPUSHARE_EVENT_SUBMITTED: gpushare_event_type = 2;
pub const GPUSHARE_EVENT_ADMITTED: gpushare_event_type = 3;
pub const GPUSHARE_EVENT_REJECTED: gpushare_event_type = 4;
pub const GPUSHARE_EVENT_LAUNCHED: gpushare_event_type = 5;
pub const GPUSHARE_EVENT_FAST_PATH_LAUNCHED: gpushare_event_type = 6;
pub const GPUSHARE_EVENT_EVICTED: gpushare_event_type = 7;
pub const GPUSHARE_EVENT_PART_DONE: gpushare_event_type = 8;
pub const GPUSHARE_EVENT_COMPLETED: gpushare_event_type = 9;
pub const GPUSHARE_EVENT_HELD: gpushare_event_type = 10;
pub const GPUSHARE_EVENT_QUERY_BEGUN: gpushare_event_type = 11;
pub const GPUSHARE_EVENT_QUERY_ENDED: gpushare_event_type = 12;
pub const GPUSHARE_EVENT_QUEUE_DEPTH: gpushare_event_type = 13;
pub const GPUSHARE_EVENT_QUOTA_CHANGED: gpushare_event_type = 14;
pub const GPUSHARE_EVENT_DEVICE_LOST: gpushare_event_type = 15;
pub const GPUSHARE_EVENT_LANE_ABANDONED: gpushare_event_type = 16;
pub const GPUSHARE_EVENT_WAITS: gpushare_event_type = 17;
pub const GPUSHARE_EVENT_QUERY_BEGIN_CALLED: gpushare_event_type = 18;
pub const GPUSHARE_EVENT_QUERY_END_CALLED: gpushare_event_type = 19;
pub const GPUSHARE_EVENT_CHOICE: gpushare_event_type = 20;
pub const GPUSHARE_EVENT_CHOICE_SHIFT: gpushare_event_type = 21;
pub const GPUSHARE_EVENT_APP_UPDATED: gpushare_event_type = 22;
pub const GPUSHARE_EVENT_NEXT_STATED: gpushare_event_type = 23;

pub const GPUSHARE_INTENSITY_UNKNOWN: gpushare_intensity = 0;
pub const GPUSHARE_INTENSITY_COMPUTE: gpushare_intensity = 1;
pub const GPUSHARE_INTENSITY_MEMORY: gpushare_intensity = 2;

pub const GPUSHARE_PLACE_ASSIGNMENT: gpushare_place_algorithm = 0;
pub const GPUSHARE_PLACE_GREEDY: gpushare_place_algorithm = 1;
pub const GPUSHARE_PLACE_FIRST_FIT: gpushare_place_algorithm = 2;
pub const GPUSHARE_PLACE_RANDOM: gpushare_place_algorithm = 3;

pub const GPUSHARE_PLACE_IN_TURNS: gpushare_place_together = 0;
pub const GPUSHARE_PLACE_AT_ONCE: gpushare_place_together = 1;

pub const GPUSHARE_LANE_PLAIN: gpushare_lane_class = 0;
pub const GPUSHARE_LANE_LC: gpushare_lane_class = 1;
pub const GPUSHARE_LANE_BE: gpushare_lane_class = 2;
pub const GPUSHARE_LANE_COPY: gpushare_lane_class = 3;

pub const GPUSHARE_SEGMENTS_NONE: gpushare_segments_run = 0;
pub const GPUSHARE_SEGMENTS_BESIDE_QUERIES: gpushare_segments_run = 1;
pub const GPUSHARE_SEGMENTS_ON_SPLIT: gpushare_segments_run = 2;

pub const GPUSHARE_CHOICE_NONE: gpushare_choice_kind = 0;
pub const GPUSHARE_CHOICE_LAYOUT: gpushare_choice_kind = 1;
pub const GPUSHARE_CHOICE_CO_SCHEDULE: gpushare_choice_kind = 2;
pub const GPUSHARE_CHOICE_OVERLAP: gpushare_choice_kind = 3;

pub type gpushare_log_callback = Option<unsafe extern "C" fn(user: *mut c_void, level: gpushare_log_level, message: *const c_char)>;

pub type gpushare_capture_callback = Option<unsafe extern "C" fn(user: *mut c_void, stream: *mut c_void, sm_count: i32) -> i32>;

pub type gpushare_completion_callback = Option<unsafe extern "C" fn(user: *mut c_void, record: *const gpushare_completion_record)>;

pub type gpushare_enqueue_callback = Option<unsafe extern "C" fn(stream: *mut c_void, user: *mut c_void)>;

pub type gpushare_calibration_callback = Option<unsafe extern "C" fn(user: *mut c_void, progress: *const gpushare_calibration_progress)>;

pub type gpushare_judge_callback = Option<unsafe extern "C" fn(user: *mut c_void, prediction: *const gpushare_judged_prediction)>;

pub type gpushare_predict_solo_callback = Option<unsafe extern "C" fn(user: *mut c_void, task: *const gpushare_task_features, prediction: *mut gpushare_prediction) -> gpushare_bool>;

pub type gpushare_predict_beside_callback = Option<unsafe extern "C" fn(user: *mut c_void, kernel: *const gpushare_confined_kernel, neighbour: *const gpushare_confined_kernel, factor: *mut f64) -> gpushare_bool>;

pub type gpushare_predict_fused_callback = Option<unsafe extern "C" fn(user: *mut c_void, fused: *const gpushare_fused_features, prediction: *mut gpushare_prediction) -> gpushare_bool>;

pub type gpushare_predict_co_resident_callback = Option<unsafe extern "C" fn(user: *mut c_void, first: *const gpushare_co_resident_side, second: *const gpushare_co_resident_side, prediction: *mut gpushare_co_resident_prediction) -> gpushare_bool>;

pub type gpushare_observe_callback = Option<unsafe extern "C" fn(user: *mut c_void, observation: *const gpushare_observation) -> gpushare_bool>;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_ticket {
    pub value: u64,
}

impl Default for gpushare_ticket {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_token_stream {
    pub value: u64,
}

impl Default for gpushare_token_stream {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_query {
    pub value: u64,
}

impl Default for gpushare_query {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_runtime_options {
    pub struct_size: u32,
    pub drive: gpushare_drive,
    pub device: *const c_char,
    pub policy: *const c_char,
    pub profile_path: *const c_char,
    pub seed: u64,
    pub sim_tier: *const c_char,
    pub sim_faults: *const c_char,
    pub device_ordinal: i32,
    pub splits_max: i32,
    pub hang_floor_ns: i64,
    pub hang_factor: f64,
    pub be_return_hysteresis_ns: i64,
    pub shutdown_timeout_ns: i64,
    pub log: gpushare_log_callback,
    pub log_user: *mut c_void,
    pub latency: gpushare_latency,
    pub reserved: i32,
    pub caller_spin_ns: i64,
}

impl Default for gpushare_runtime_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_runtime_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_runtime_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_worst_case {
    pub sms: i32,
    pub reserved: i32,
    pub worst_ns: i64,
}

impl Default for gpushare_worst_case {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_app_options {
    pub struct_size: u32,
    pub app_class: gpushare_app_class,
    pub name: *const c_char,
    pub target_ns: i64,
    pub p99_bound: f64,
    pub p99_alone_ns: i64,
    pub solo_ns: i64,
    pub weight: f64,
    pub drop_late: gpushare_bool,
    pub tasks_max: i32,
    pub p50_bound: f64,
    pub idle_timeout_ns: i64,
    pub priority: i32,
    pub reserved: i32,
    pub yield_ns_max: i64,
    pub bounds_tokens: gpushare_bool,
    pub reserved2: i32,
    pub period_ns: i64,
    pub deadline_ns: i64,
    pub worst_cases: *const gpushare_worst_case,
    pub worst_case_count: u32,
    pub reserved3: u32,
    pub job_eviction_ns: i64,
    pub neighbour_factor: f64,
}

impl Default for gpushare_app_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_app_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_app_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_app_update_options {
    pub struct_size: u32,
    pub fields: u32,
    pub target_ns: i64,
    pub p99_bound: f64,
    pub p50_bound: f64,
    pub p99_alone_ns: i64,
    pub weight: f64,
    pub priority: i32,
    pub reserved: i32,
}

impl Default for gpushare_app_update_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_app_update_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_app_update_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_reservation_options {
    pub struct_size: u32,
    pub capsms: i32,
    pub packed: gpushare_bool,
    pub reserved: i32,
}

impl Default for gpushare_reservation_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_reservation_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_reservation_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_partition_options {
    pub struct_size: u32,
    pub share: gpushare_bool,
    pub slack_eviction_ns: i64,
    pub reserved_sms: i32,
    pub reserved: i32,
}

impl Default for gpushare_partition_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_partition_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_partition_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_partition_plan {
    pub struct_size: u32,
    pub partitions: i32,
    pub partition_sms: i32,
    pub rest_sms: i32,
}

impl Default for gpushare_partition_plan {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_partition_plan = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_partition_plan>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_speed_point {
    pub sms: i32,
    pub reserved: i32,
    pub speed: f64,
}

impl Default for gpushare_speed_point {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_resource_demand {
    pub issue: f64,
    pub tensor: f64,
    pub special: f64,
    pub dram: f64,
    pub l2: f64,
}

impl Default for gpushare_resource_demand {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_graph_node {
    pub duration_ns: i64,
    pub blocks: i32,
    pub repeat: i32,
    pub whole_sm: gpushare_choice,
    pub reserved: i32,
    pub demand: gpushare_resource_demand,
}

impl Default for gpushare_graph_node {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_simulation_record {
    pub struct_size: u32,
    pub speed_count: u32,
    pub block_task_ns: i64,
    pub block_task_spread: f64,
    pub worker_overhead: f64,
    pub memory_parallelism: f64,
    pub saturating_occupancy: f64,
    pub demand: gpushare_resource_demand,
    pub speed: *const gpushare_speed_point,
    pub nodes: *const gpushare_graph_node,
    pub node_count: u32,
    pub reserved: u32,
    pub node_gap_ns: i64,
}

impl Default for gpushare_simulation_record {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_simulation_record = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_simulation_record>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_kernel_counters {
    pub struct_size: u32,
    pub reserved: u32,
    pub instructions: f64,
    pub memory_instructions: f64,
    pub sectors_per_request: f64,
    pub issue: f64,
    pub fma: f64,
    pub alu: f64,
    pub tensor: f64,
    pub special: f64,
    pub lsu: f64,
    pub shared: f64,
    pub l1: f64,
    pub l2: f64,
    pub dram: f64,
    pub dram_write: f64,
    pub saturating_occupancy: f64,
}

impl Default for gpushare_kernel_counters {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_kernel_counters = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_kernel_counters>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_library_call {
    pub struct_size: u32,
    pub operation: gpushare_library_operation,
    pub r#type: gpushare_data_type,
    pub mode: gpushare_library_mode,
    pub channels_last: gpushare_bool,
    pub transpose_a: gpushare_bool,
    pub transpose_b: gpushare_bool,
    pub reserved: i32,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub batch: i64,
    pub channels: i64,
    pub height: i64,
    pub width: i64,
    pub filters: i64,
    pub filter_height: i64,
    pub filter_width: i64,
    pub padding: i64,
    pub stride: i64,
    pub dilation: i64,
    pub groups: i64,
}

impl Default for gpushare_library_call {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_library_call = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_library_call>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_library_arguments {
    pub a: *const c_void,
    pub b: *const c_void,
    pub c: *const c_void,
    pub d: *mut c_void,
    pub alpha: f32,
    pub beta: f32,
}

impl Default for gpushare_library_arguments {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_memory_range {
    pub address: *const c_void,
    pub size_bytes: u64,
}

impl Default for gpushare_memory_range {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_function_image {
    pub function: *const c_void,
    pub image: *const c_void,
    pub image_bytes: u64,
    pub name: *const c_char,
}

impl Default for gpushare_function_image {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_kernel_options {
    pub struct_size: u32,
    pub kind: gpushare_task_kind,
    pub name: *const c_char,
    pub threads_per_block: i32,
    pub registers_per_thread: i32,
    pub shared_memory_bytes: i32,
    pub workers_per_sm_max: i32,
    pub evictable: gpushare_choice,
    pub confinable: gpushare_choice,
    pub roomy: gpushare_choice,
    pub reserved: i32,
    pub yield_interval_ns: i64,
    pub solo_ns: i64,
    pub original_function: *mut c_void,
    pub worker_function: *mut c_void,
    pub graph: *mut c_void,
    pub simulation: *const gpushare_simulation_record,
    pub capture: gpushare_capture_callback,
    pub capture_user: *mut c_void,
    pub graph_exec: *mut c_void,
    pub block_x: i32,
    pub block_y: i32,
    pub block_z: i32,
    pub dynamic_shared_memory_bytes: i32,
    pub library: *const gpushare_library_call,
    pub slice_function: *mut c_void,
    pub segment_ns: i64,
    pub measure_nodes: gpushare_bool,
    pub reserved2: i32,
    pub measure_places: gpushare_bool,
    pub reserved3: i32,
    pub warm_memory: *const gpushare_memory_range,
    pub warm_memory_count: u32,
    pub reserved4: i32,
    pub function_images: *const gpushare_function_image,
    pub function_image_count: u32,
    pub reserved5: i32,
    pub counters: *const gpushare_kernel_counters,
}

impl Default for gpushare_kernel_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_kernel_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_kernel_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_ptx_code {
    pub struct_size: u32,
    pub forms: u32,
    pub text: *const c_char,
    pub text_bytes: u64,
    pub entry: *const c_char,
}

impl Default for gpushare_ptx_code {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_ptx_code = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_ptx_code>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_kernel_info {
    pub struct_size: u32,
    pub kind: gpushare_task_kind,
    pub threads_per_block: i32,
    pub registers_per_thread: i32,
    pub shared_memory_bytes: i32,
    pub workers_per_sm_max: i32,
    pub evictable: gpushare_bool,
    pub confinable: gpushare_bool,
    pub roomy: gpushare_bool,
    pub node_count: i32,
    pub block_task_ns: i64,
    pub yield_interval_ns: i64,
    pub solo_ns: i64,
    pub demand: gpushare_resource_demand,
    pub whole_reason: *const c_char,
    pub longest_segment_ns: i64,
    pub segment_count: i32,
    pub reserved: i32,
    pub worker_refusal: *const c_char,
    pub slice_refusal: *const c_char,
    pub worker_refusal_line: u32,
    pub slice_refusal_line: u32,
    pub evictable_segments: i32,
    pub reserved2: i32,
}

impl Default for gpushare_kernel_info {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_kernel_info = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_kernel_info>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_fused_kernel_options {
    pub struct_size: u32,
    pub tensor_blocks: i32,
    pub cuda_blocks: i32,
    pub reserved: i32,
    pub name: *const c_char,
    pub tensor_part: *mut gpushare_kernel,
    pub cuda_part: *mut gpushare_kernel,
    pub opportune_load_ratio: f64,
    pub opportune_duration_ratio: f64,
    pub function: *mut c_void,
    pub threads_per_block: i32,
    pub dynamic_shared_memory_bytes: i32,
    pub blocks_per_sm: i32,
    pub reserved2: i32,
}

impl Default for gpushare_fused_kernel_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_fused_kernel_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_fused_kernel_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_query_options {
    pub struct_size: u32,
    pub reserved: u32,
    pub arrival_ns: i64,
    pub input_size: f64,
}

impl Default for gpushare_query_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_query_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_query_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_completion_record {
    pub struct_size: u32,
    pub verdict: gpushare_verdict,
    pub ticket: gpushare_ticket,
    pub query: gpushare_query,
    pub app_id: u32,
    pub queue_id: u32,
    pub kernel_id: u32,
    pub kind: gpushare_task_kind,
    pub submit_ns: i64,
    pub admit_ns: i64,
    pub launch_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub complete_ns: i64,
    pub predicted_ns: i64,
    pub predicted_error_ns: i64,
    pub measured_ns: i64,
    pub evicted_ns: i64,
    pub block_tasks: i64,
    pub evictions: i32,
    pub launches: i32,
    pub form: gpushare_form,
    pub place: i32,
    pub launch_reason: gpushare_reason,
    pub hold_reason: gpushare_reason,
    pub beside_kernel_id: u32,
    pub error_code: i32,
    pub failed_dependency: gpushare_ticket,
    pub failed_dependency_verdict: gpushare_verdict,
    pub reserved: i32,
}

impl Default for gpushare_completion_record {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_completion_record = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_completion_record>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_task_options {
    pub struct_size: u32,
    pub kind: gpushare_task_kind,
    pub kernel: *mut gpushare_kernel,
    pub block_tasks: i64,
    pub arguments: *const c_void,
    pub arguments_size_bytes: u64,
    pub query: gpushare_query,
    pub arrival_ns: i64,
    pub declared_ns: i64,
    pub copy_destination: *mut c_void,
    pub copy_source: *const c_void,
    pub copy_size_bytes: i64,
    pub copy_direction: gpushare_copy_direction,
    pub copy_pageable: gpushare_bool,
    pub wait_tickets: *const gpushare_ticket,
    pub wait_events: *const *mut c_void,
    pub wait_ticket_count: u32,
    pub wait_event_count: u32,
    pub signal_event: *mut c_void,
    pub detached: gpushare_bool,
    pub reserved: i32,
    pub enqueue: gpushare_enqueue_callback,
    pub enqueue_user: *mut c_void,
    pub callback: gpushare_completion_callback,
    pub callback_user: *mut c_void,
    pub grid_x: i32,
    pub grid_y: i32,
    pub grid_z: i32,
    pub reserved2: i32,
    pub next_within_ns: i64,
}

impl Default for gpushare_task_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_task_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_task_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_region_options {
    pub struct_size: u32,
    pub reserved: i32,
    pub bound_ns: i64,
    pub arrival_ns: i64,
    pub input_size: f64,
    pub wait_ns: i64,
    pub next_within_ns: i64,
}

impl Default for gpushare_region_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_region_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_region_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_device_info {
    pub struct_size: u32,
    pub simulated: gpushare_bool,
    pub name: *const c_char,
    pub profile: *const c_char,
    pub policy: *const c_char,
    pub virtual_time: gpushare_bool,
    pub partitions: gpushare_bool,
    pub eviction: gpushare_bool,
    pub timestamps: gpushare_bool,
    pub sm_count: i32,
    pub sm_granularity: i32,
    pub lanes_max: i32,
    pub places_max: i32,
    pub threads_per_sm: i32,
    pub registers_per_sm: i32,
    pub shared_memory_per_sm_bytes: i32,
    pub blocks_per_sm: i32,
    pub launch_latency_ns: i64,
    pub completion_latency_ns: i64,
    pub eviction_write_latency_ns: i64,
    pub pinned_bytes_per_ns: f64,
}

impl Default for gpushare_device_info {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_device_info = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_device_info>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_latency_summary {
    pub count: i64,
    pub p50_ns: i64,
    pub p99_ns: i64,
    pub max_ns: i64,
}

impl Default for gpushare_latency_summary {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_runtime_stats {
    pub struct_size: u32,
    pub simulated: gpushare_bool,
    pub ticks: i64,
    pub plans: i64,
    pub launches: i64,
    pub fast_path_launches: i64,
    pub evictions: i64,
    pub evictions_blocked: i64,
    pub hung: i64,
    pub busy_sm_ns: i64,
    pub tasks_pending: i64,
    pub prediction_samples: i64,
    pub prediction_error: f64,
    pub eviction_latency: gpushare_latency_summary,
    pub plan_time: gpushare_latency_summary,
    pub device_lost: gpushare_bool,
    pub app_count: i32,
}

impl Default for gpushare_runtime_stats {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_runtime_stats = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_runtime_stats>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_app_stats {
    pub struct_size: u32,
    pub app_class: gpushare_app_class,
    pub submitted: i64,
    pub completed: i64,
    pub failed: i64,
    pub dropped: i64,
    pub cancelled: i64,
    pub rejected: i64,
    pub evictions: i64,
    pub queue_depth: i64,
    pub device_ns: i64,
    pub work_ns: i64,
    pub block_tasks: i64,
    pub latency: gpushare_latency_summary,
    pub queries_open: i64,
    pub queries_idle: i64,
    pub regions_open: i64,
    pub regions_overdue: i64,
}

impl Default for gpushare_app_stats {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_app_stats = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_app_stats>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_app_guarantee {
    pub struct_size: u32,
    pub app_class: gpushare_app_class,
    pub target_ns: i64,
    pub p99_bound: f64,
    pub p50_bound: f64,
    pub queries: i64,
    pub p50_ns: i64,
    pub p99_ns: i64,
    pub p99_over_alone: f64,
    pub late_share: f64,
    pub tail_credit: f64,
    pub queries_late_for_be: i64,
    pub held_ns: [i64; 32],
    pub p99_alone_ns: i64,
    pub p99_over_alone_known: gpushare_bool,
    pub late_share_known: gpushare_bool,
    pub p99_alone_estimate_ns: i64,
    pub p99_alone_error: f64,
    pub bound_lost: gpushare_bool,
    pub target_lost: gpushare_bool,
    pub yielded_ns: i64,
    pub next_lapsed: i64,
    pub token_streams: i64,
    pub first_tokens: i64,
    pub ttft_p50_ns: i64,
    pub ttft_p99_ns: i64,
    pub token_distances: i64,
    pub tbt_p50_ns: i64,
    pub tbt_p99_ns: i64,
    pub partition_sms: i32,
    pub reserved: i32,
    pub response_bound_ns: i64,
    pub response_ns_max: i64,
    pub jobs: i64,
    pub deadlines_missed: i64,
    pub overruns: i64,
}

impl Default for gpushare_app_guarantee {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_app_guarantee = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_app_guarantee>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_trace_options {
    pub struct_size: u32,
    pub reserved: i32,
    pub perfetto_path: *const c_char,
    pub event_log_path: *const c_char,
    pub records_max: i64,
}

impl Default for gpushare_trace_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_trace_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_trace_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_trace_summary {
    pub struct_size: u32,
    pub reserved: i32,
    pub records: i64,
    pub dropped: i64,
    pub decision_digest: u64,
}

impl Default for gpushare_trace_summary {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_trace_summary = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_trace_summary>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_event {
    pub struct_size: u32,
    pub r#type: gpushare_event_type,
    pub time_ns: i64,
    pub id: u64,
    pub a: i64,
    pub b: i64,
    pub c: i64,
    pub d: i64,
    pub app_id: u32,
    pub kernel_id: u32,
    pub place: i32,
    pub reason: gpushare_reason,
    pub detail: i32,
    pub app_class: gpushare_app_class,
}

impl Default for gpushare_event {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_event = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_event>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_replay_result {
    pub struct_size: u32,
    pub matches: gpushare_bool,
    pub events: i64,
    pub events_equal: i64,
    pub decisions: i64,
    pub decisions_equal: i64,
}

impl Default for gpushare_replay_result {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_replay_result = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_replay_result>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_calibration_item {
    pub kernel: *const gpushare_kernel_options,
    pub task: *const gpushare_task_options,
}

impl Default for gpushare_calibration_item {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_calibration_fused {
    pub fused: *const gpushare_fused_kernel_options,
    pub tensor_item: u32,
    pub cuda_item: u32,
    pub local_bytes: i32,
    pub reserved: u32,
}

impl Default for gpushare_calibration_fused {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_kernel_calibration {
    pub struct_size: u32,
    pub kind: gpushare_task_kind,
    pub name: *const c_char,
    pub block_tasks: i64,
    pub solo_ns: i64,
    pub worker_solo_ns: i64,
    pub block_task_ns: i64,
    pub eviction_p50_ns: i64,
    pub eviction_p99_ns: i64,
    pub block_task_spread: f64,
    pub worker_overhead: f64,
    pub saturating_occupancy: f64,
    pub speed: *const gpushare_speed_point,
    pub knees: *const i32,
    pub speed_count: u32,
    pub knee_count: u32,
    pub workers_per_sm_max: i32,
    pub kept: gpushare_bool,
    pub slice_block_tasks: i64,
    pub slice_overhead: f64,
    pub workers_per_sm_least: i32,
    pub intensity: gpushare_intensity,
}

impl Default for gpushare_kernel_calibration {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_kernel_calibration = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_kernel_calibration>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_calibration_progress {
    pub struct_size: u32,
    pub done: i32,
    pub total: i32,
    pub reserved: i32,
    pub what: *const c_char,
    pub kernel: *const gpushare_kernel_calibration,
    pub note: *const c_char,
}

impl Default for gpushare_calibration_progress {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_calibration_progress = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_calibration_progress>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_calibration_options {
    pub struct_size: u32,
    pub device_ordinal: i32,
    pub device: *const c_char,
    pub profile_path: *const c_char,
    pub output_path: *const c_char,
    pub items: *const gpushare_calibration_item,
    pub cancel: *const i32,
    pub sim_tier: *const c_char,
    pub sim_faults: *const c_char,
    pub seed: u64,
    pub kernel_time_ns: i64,
    pub hang_limit_ns: i64,
    pub device_buffer: *mut c_void,
    pub pinned_buffer: *mut c_void,
    pub pageable_buffer: *mut c_void,
    pub buffer_size_bytes: i64,
    pub item_count: u32,
    pub repeats: i32,
    pub evictions: i32,
    pub resume: gpushare_bool,
    pub fused: *const gpushare_calibration_fused,
    pub total_time_ns: i64,
    pub slice_overhead_max: f64,
    pub fused_count: u32,
    pub reserved: u32,
    pub samples_path: *const c_char,
}

impl Default for gpushare_calibration_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_calibration_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_calibration_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_pre_run_options {
    pub struct_size: u32,
    pub device_ordinal: i32,
    pub device: *const c_char,
    pub kernel: *const gpushare_kernel_options,
    pub task: *const gpushare_task_options,
    pub hang_limit_ns: i64,
}

impl Default for gpushare_pre_run_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_pre_run_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_pre_run_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_judged_prediction {
    pub struct_size: u32,
    pub reserved: u32,
    pub family: *const c_char,
    pub model: *const c_char,
    pub subject: *const c_char,
    pub predicted: f64,
    pub measured: f64,
}

impl Default for gpushare_judged_prediction {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_judged_prediction = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_judged_prediction>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_options {
    pub struct_size: u32,
    pub algorithm: gpushare_place_algorithm,
    pub together: gpushare_place_together,
    pub be_per_gpu: i32,
    pub ignore_bounds: gpushare_bool,
    pub reserved: i32,
    pub moves_max: i64,
    pub seed: u64,
    pub error_bars: f64,
    pub risk: f64,
    pub free_gpu: f64,
}

impl Default for gpushare_place_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_gpu {
    pub struct_size: u32,
    pub count: i32,
    pub name: *const c_char,
    pub memory_bytes: i64,
}

impl Default for gpushare_place_gpu {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_gpu = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_gpu>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_lc {
    pub struct_size: u32,
    pub replicas: i32,
    pub name: *const c_char,
    pub kind: *const c_char,
    pub load: f64,
    pub memory_bytes: i64,
    pub p99_bound: f64,
    pub target_ns: i64,
    pub p99_alone_ns: i64,
}

impl Default for gpushare_place_lc {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_lc = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_lc>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_be {
    pub struct_size: u32,
    pub instances: i32,
    pub name: *const c_char,
    pub kind: *const c_char,
    pub memory_bytes: i64,
    pub weight: f64,
}

impl Default for gpushare_place_be {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_be = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_be>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_pair {
    pub struct_size: u32,
    pub reserved: i32,
    pub lc: *const c_char,
    pub be: *const c_char,
    pub load: f64,
    pub p99_ratio: f64,
    pub p99_error: f64,
    pub be_rate: f64,
    pub be_error: f64,
}

impl Default for gpushare_place_pair {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_pair = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_pair>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_result {
    pub struct_size: u32,
    pub reserved: i32,
    pub lc_placed: i64,
    pub be_placed: i64,
    pub free_gpus: i64,
    pub moved: i64,
    pub bounds_broken: i64,
    pub be_rate: f64,
    pub value: f64,
    pub upper_bound: f64,
}

impl Default for gpushare_place_result {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_place_result = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_place_result>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_pair_launch {
    pub struct_size: u32,
    pub count: i32,
    pub kernel: *mut gpushare_kernel,
    pub block_tasks: i64,
}

impl Default for gpushare_pair_launch {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_pair_launch = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_pair_launch>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_profile_train_options {
    pub struct_size: u32,
    pub replace_demands: gpushare_bool,
    pub profile_path: *const c_char,
    pub samples_path: *const c_char,
    pub output_path: *const c_char,
}

impl Default for gpushare_profile_train_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_profile_train_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_profile_train_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_profile_like_options {
    pub struct_size: u32,
    pub reserved: u32,
    pub profile_path: *const c_char,
    pub kernel: *const c_char,
    pub like: *const c_char,
    pub samples_path: *const c_char,
    pub output_path: *const c_char,
}

impl Default for gpushare_profile_like_options {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_profile_like_options = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_profile_like_options>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_place_view {
    pub sms: i32,
    pub reserved: i32,
    pub overlaps: u64,
}

impl Default for gpushare_place_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_split_view {
    pub lc_place: i32,
    pub be_place: i32,
    pub lc_sms: i32,
    pub be_sms: i32,
}

impl Default for gpushare_split_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_copy_state {
    pub be_active: i32,
    pub lc_active: i32,
    pub be_limit: i32,
    pub reserved: i32,
}

impl Default for gpushare_copy_state {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_lc_app_view {
    pub app_id: u32,
    pub reserved_capsms: i32,
    pub target_ns: i64,
    pub p99_bound: f64,
    pub p99_alone_ns: i64,
    pub solo_ns: i64,
    pub load: f64,
    pub blocking_budget_ns: i64,
    pub active_queries: i32,
    pub tasks_in_flight: i32,
    pub idle_since_ns: i64,
    pub main_kernel_id: u32,
    pub reserved: i32,
    pub p50_bound: f64,
    pub latency_limit_ns: i64,
    pub p99_slack_ns: i64,
    pub p50_slack_ns: i64,
    pub split_p99_bound: f64,
    pub split_target_ns: i64,
    pub load_error: f64,
    pub peak_load: f64,
    pub target_tail: f64,
    pub uncuttable_budget_ns: i64,
    pub tail_rate_per_ns: f64,
    pub late_delay_ns: i64,
    pub tail_credit: f64,
    pub tail_need_per_ns: f64,
    pub lag_ns: i64,
    pub shadow_p99_ns: i64,
    pub service_age_ns: i64,
    pub lag_slack_ns: i64,
    pub speed_beside_copies: [f32; 4],
    pub packed: gpushare_bool,
    pub reserved2: i32,
    pub priority: i32,
    pub reserved3: i32,
    pub lull_delay_ns: i64,
    pub expected_by_ns: i64,
    pub first_late_max: f64,
    pub saved_vacation_ns: i64,
}

impl Default for gpushare_lc_app_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_be_app_view {
    pub app_id: u32,
    pub quota_capsms: i32,
    pub weight: f64,
    pub attained_ns: i64,
    pub used_capsms: f64,
    pub packed: gpushare_bool,
    pub reserved: i32,
    pub fair_weight: f64,
    pub served_ns: i64,
    pub copies_attained_ns: [i64; 4],
    pub copies_served_ns: [i64; 4],
}

impl Default for gpushare_be_app_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_query_view {
    pub query: gpushare_query,
    pub lc_app: i32,
    pub reserved: i32,
    pub arrival_ns: i64,
    pub deadline_ns: i64,
    pub solo_ns: i64,
    pub issued_ns: i64,
    pub done_ns: i64,
    pub headroom_ns: i64,
}

impl Default for gpushare_query_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_head_view {
    pub task: gpushare_ticket,
    pub app_class: gpushare_app_class,
    pub app: i32,
    pub queue_id: u32,
    pub kind: gpushare_task_kind,
    pub query: gpushare_query,
    pub kernel_id: u32,
    pub kernel_index: i32,
    pub sequence: u64,
    pub ready_ns: i64,
    pub ready_count: i32,
    pub workers_per_sm_max: i32,
    pub blocks_left: i64,
    pub resumed: gpushare_bool,
    pub evictable: gpushare_bool,
    pub confinable: gpushare_bool,
    pub pinned: gpushare_bool,
    pub direction: gpushare_copy_direction,
    pub trained: gpushare_bool,
    pub remaining_ns: i64,
    pub remaining_error_ns: i64,
    pub eviction_ns: i64,
    pub overlap_index: i32,
    pub reserved: i32,
    pub eviction_p99_ns: i64,
    pub eviction_known: gpushare_bool,
    pub runs_alone: gpushare_bool,
    pub followed: gpushare_bool,
    pub keeps_l1: gpushare_bool,
    pub draining: gpushare_bool,
    pub reserved2: i32,
    pub segment_gain: f64,
    pub split_gain: f64,
    pub split_gain_known: f64,
    pub awaited_by_lc: gpushare_bool,
    pub reserved3: i32,
}

impl Default for gpushare_head_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_part_view {
    pub place: i32,
    pub lane: i32,
    pub workers: i32,
    pub evicting: gpushare_bool,
    pub form: gpushare_form,
    pub reserved: i32,
    pub launched_ns: i64,
}

impl Default for gpushare_part_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_running_view {
    pub parts: [gpushare_part_view; 4],
    pub part_count: i32,
    pub reserved: i32,
    pub places: u64,
    pub task: gpushare_head_view,
}

impl Default for gpushare_running_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_pair_option {
    pub lc_speed: f32,
    pub lc_speed_alone: f32,
    pub be_speed_be_side: f32,
    pub be_speed_lc_side: f32,
}

impl Default for gpushare_pair_option {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_fused_view {
    pub kernel_id: u32,
    pub tensor_kernel_id: u32,
    pub cuda_kernel_id: u32,
    pub tensor_blocks: i32,
    pub cuda_blocks: i32,
    pub blocks_per_sm: i32,
    pub trained: gpushare_bool,
    pub reserved: i32,
    pub intercept: f64,
    pub slope: f64,
    pub bend: f64,
    pub inflection: f64,
    pub error: f64,
}

impl Default for gpushare_fused_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_co_schedule_option {
    pub workers_per_sm: [i32; 2],
    pub speed: [f32; 2],
    pub speed_error: f32,
    pub profit: f32,
}

impl Default for gpushare_co_schedule_option {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_arrangement {
    pub split: i32,
    pub trial_kernel: i32,
    pub segments: gpushare_segments_run,
    pub reserved: i32,
}

impl Default for gpushare_arrangement {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_snapshot {
    pub struct_size: u32,
    pub sm_count: i32,
    pub now_ns: i64,
    pub plan_sequence: u64,
    pub capsms_free: f64,
    pub queued_ns: i64,
    pub quiesced: gpushare_bool,
    pub partitions_available: gpushare_bool,
    pub eviction_available: gpushare_bool,
    pub reserved: i32,
    pub copies: [gpushare_copy_state; 4],
    pub places: *const gpushare_place_view,
    pub splits: *const gpushare_split_view,
    pub lc_apps: *const gpushare_lc_app_view,
    pub be_apps: *const gpushare_be_app_view,
    pub queries: *const gpushare_query_view,
    pub heads: *const gpushare_head_view,
    pub running: *const gpushare_running_view,
    pub pairs: *const gpushare_pair_option,
    pub place_count: u32,
    pub place_stride: u32,
    pub split_count: u32,
    pub split_stride: u32,
    pub lc_app_count: u32,
    pub lc_app_stride: u32,
    pub be_app_count: u32,
    pub be_app_stride: u32,
    pub query_count: u32,
    pub query_stride: u32,
    pub head_count: u32,
    pub head_stride: u32,
    pub running_count: u32,
    pub running_stride: u32,
    pub pair_kernels: u32,
    pub pair_stride: u32,
    pub pair_version: u64,
    pub fused: *const gpushare_fused_view,
    pub co_schedules: *const gpushare_co_schedule_option,
    pub fused_count: u32,
    pub fused_stride: u32,
    pub co_schedule_kernels: u32,
    pub co_schedule_stride: u32,
    pub fused_version: u64,
    pub co_schedule_version: u64,
    pub return_hysteresis_ns: i64,
    pub be_paused_until_ns: i64,
    pub be_pauses_at_ns: i64,
    pub hoped: *const f32,
    pub copies_lc_uses: [gpushare_bool; 4],
    pub in_force: gpushare_arrangement,
    pub trials_open: gpushare_bool,
    pub reserved2: i32,
    pub queries_left_out: gpushare_bool,
    pub reserved3: i32,
}

impl Default for gpushare_snapshot {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_snapshot = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_snapshot>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_planned_launch {
    pub task: gpushare_ticket,
    pub fused_with: gpushare_ticket,
    pub blocks_max: i64,
    pub count: i32,
    pub form: gpushare_form,
    pub place: i32,
    pub lane_class: gpushare_lane_class,
    pub workers: i32,
    pub reason: gpushare_reason,
    pub reserved: [i32; 2],
}

impl Default for gpushare_planned_launch {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_planned_eviction {
    pub task: gpushare_ticket,
    pub place: i32,
    pub workers_to_keep: i32,
    pub reason: gpushare_reason,
    pub reserved: i32,
}

impl Default for gpushare_planned_eviction {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_planned_hold {
    pub task: gpushare_ticket,
    pub value_ns: i64,
    pub limit_ns: i64,
    pub reason: gpushare_reason,
    pub reserved: i32,
}

impl Default for gpushare_planned_hold {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_lc_route {
    pub place: i32,
    pub lane_class: gpushare_lane_class,
    pub fast_path: gpushare_bool,
    pub evict_overlapping: gpushare_bool,
}

impl Default for gpushare_lc_route {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_planned_choice {
    pub tasks: [gpushare_ticket; 2],
    pub chosen: i64,
    pub runner_up: i64,
    pub value: i64,
    pub runner_up_value: i64,
    pub shift_ns: i64,
    pub shift_limit_ns: i64,
    pub runner_up_shift_ns: i64,
    pub runner_up_shift_limit_ns: i64,
    pub kind: gpushare_choice_kind,
    pub reserved: i32,
}

impl Default for gpushare_planned_choice {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_plan {
    pub struct_size: u32,
    pub launch_count: u32,
    pub eviction_count: u32,
    pub hold_count: u32,
    pub launches: *mut gpushare_planned_launch,
    pub evictions: *mut gpushare_planned_eviction,
    pub holds: *mut gpushare_planned_hold,
    pub routes: *mut gpushare_lc_route,
    pub replan_at_ns: i64,
    pub arrangement: gpushare_arrangement,
    pub waits_for_empty_sms: *mut gpushare_bool,
    pub choice: gpushare_planned_choice,
    pub longest_segment_ns: i64,
}

impl Default for gpushare_plan {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_plan = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_plan>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_policy_table {
    pub struct_size: u32,
    pub version: u32,
    pub name: *const c_char,
    pub make_plan: Option<unsafe extern "C" fn(user: *mut c_void, snapshot: *const gpushare_snapshot, plan: *mut gpushare_plan)>,
    pub destroy: Option<unsafe extern "C" fn(user: *mut c_void)>,
    pub user: *mut c_void,
}

impl Default for gpushare_policy_table {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_policy_table = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_policy_table>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_task_features {
    pub struct_size: u32,
    pub kernel_id: u32,
    pub kernel_name: *const c_char,
    pub kind: gpushare_task_kind,
    pub app_id: u32,
    pub block_tasks: i64,
    pub size_bytes: i64,
    pub declared_ns: i64,
    pub direction: gpushare_copy_direction,
    pub pinned: gpushare_bool,
}

impl Default for gpushare_task_features {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_task_features = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_task_features>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_confined_kernel {
    pub struct_size: u32,
    pub kernel_id: u32,
    pub kernel_name: *const c_char,
    pub sms: i32,
    pub reserved: i32,
}

impl Default for gpushare_confined_kernel {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_confined_kernel = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_confined_kernel>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_fused_features {
    pub struct_size: u32,
    pub blocks_per_sm: i32,
    pub name: *const c_char,
    pub tensor_kernel_id: u32,
    pub cuda_kernel_id: u32,
    pub tensor_blocks: i32,
    pub cuda_blocks: i32,
    pub tensor_block_tasks: i64,
    pub cuda_block_tasks: i64,
    pub opportune_load_ratio: f64,
    pub opportune_duration_ratio: f64,
}

impl Default for gpushare_fused_features {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_fused_features = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_fused_features>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_co_resident_side {
    pub struct_size: u32,
    pub kernel_id: u32,
    pub kernel_name: *const c_char,
    pub workers_per_sm: i32,
    pub reserved: i32,
    pub block_tasks: i64,
}

impl Default for gpushare_co_resident_side {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_co_resident_side = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_co_resident_side>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_prediction {
    pub duration_ns: i64,
    pub error_ns: i64,
    pub trained: gpushare_bool,
    pub reserved: i32,
}

impl Default for gpushare_prediction {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_co_resident_prediction {
    pub speed: [f64; 2],
    pub speed_error: f64,
    pub finish: [gpushare_prediction; 2],
}

impl Default for gpushare_co_resident_prediction {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_co_resident_view {
    pub kernel_name: *const c_char,
    pub kernel_id: u32,
    pub sms: i32,
    pub same_sms: gpushare_bool,
    pub reserved: i32,
}

impl Default for gpushare_co_resident_view {
    /// All zero.
    fn default() -> Self {
        unsafe { core::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_observation {
    pub struct_size: u32,
    pub form: gpushare_form,
    pub task: *const gpushare_task_features,
    pub fused: *const gpushare_fused_features,
    pub beside: *const gpushare_co_resident_view,
    pub beside_count: u32,
    pub beside_stride: u32,
    pub sms: i32,
    pub workers: i32,
    pub predicted_ns: i64,
    pub measured_ns: i64,
    pub evicted: gpushare_bool,
    pub reserved: i32,
}

impl Default for gpushare_observation {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_observation = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_observation>() as u32;
        value
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gpushare_cost_model_table {
    pub struct_size: u32,
    pub version: u32,
    pub name: *const c_char,
    pub predict_solo: gpushare_predict_solo_callback,
    pub predict_beside: gpushare_predict_beside_callback,
    pub predict_fused: gpushare_predict_fused_callback,
    pub predict_co_resident: gpushare_predict_co_resident_callback,
    pub observe: gpushare_observe_callback,
    pub destroy: Option<unsafe extern "C" fn(user: *mut c_void)>,
    pub user: *mut c_void,
}

impl Default for gpushare_cost_model_table {
    /// Zero, which means default, with `struct_size` set.
    fn default() -> Self {
        let mut value: gpushare_cost_model_table = unsafe { core::mem::zeroed() };
        value.struct_size = core::mem::size_of::<gpushare_cost_model_table>() as u32;
        value
    }
}

extern "C" {
    pub fn gpushare_abi_version() -> u32;
    pub fn gpushare_version_string() -> *const c_char;
    pub fn gpushare_status_name(status: gpushare_status) -> *const c_char;
    pub fn gpushare_last_error_message() -> *const c_char;
    pub fn gpushare_app_class_name(app_class: gpushare_app_class) -> *const c_char;
    pub fn gpushare_task_kind_name(kind: gpushare_task_kind) -> *const c_char;
    pub fn gpushare_form_name(form: gpushare_form) -> *const c_char;
    pub fn gpushare_verdict_name(verdict: gpushare_verdict) -> *const c_char;
    pub fn gpushare_reason_name(reason: gpushare_reason) -> *const c_char;
    pub fn gpushare_runtime_create(options: *const gpushare_runtime_options, out_runtime: *mut *mut gpushare_runtime) -> gpushare_status;
    pub fn gpushare_runtime_retain(runtime: *mut gpushare_runtime) -> gpushare_status;
    pub fn gpushare_runtime_release(runtime: *mut gpushare_runtime) -> gpushare_status;
    pub fn gpushare_runtime_shutdown(runtime: *mut gpushare_runtime, deadline_ns: i64) -> gpushare_status;
    pub fn gpushare_runtime_drain(runtime: *mut gpushare_runtime, deadline_ns: i64) -> gpushare_status;
    pub fn gpushare_runtime_quiesce(runtime: *mut gpushare_runtime, deadline_ns: i64) -> gpushare_status;
    pub fn gpushare_runtime_resume(runtime: *mut gpushare_runtime) -> gpushare_status;
    pub fn gpushare_poll(runtime: *mut gpushare_runtime, out_progress: *mut gpushare_bool) -> gpushare_status;
    pub fn gpushare_poll_until(runtime: *mut gpushare_runtime, time_ns: i64) -> gpushare_status;
    pub fn gpushare_now_ns(runtime: *mut gpushare_runtime, out_time_ns: *mut i64) -> gpushare_status;
    pub fn gpushare_set_policy(runtime: *mut gpushare_runtime, name: *const c_char) -> gpushare_status;
    pub fn gpushare_policy_names(buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_app_create(runtime: *mut gpushare_runtime, options: *const gpushare_app_options, out_app: *mut *mut gpushare_app) -> gpushare_status;
    pub fn gpushare_app_update(app: *mut gpushare_app, options: *const gpushare_app_update_options) -> gpushare_status;
    pub fn gpushare_app_retain(app: *mut gpushare_app) -> gpushare_status;
    pub fn gpushare_app_release(app: *mut gpushare_app) -> gpushare_status;
    pub fn gpushare_reserve_capsm(app: *mut gpushare_app, options: *const gpushare_reservation_options) -> gpushare_status;
    pub fn gpushare_plan_partitions(runtime: *mut gpushare_runtime, options: *const gpushare_partition_options, out_plan: *mut gpushare_partition_plan) -> gpushare_status;
    pub fn gpushare_queue_create(app: *mut gpushare_app, out_queue: *mut *mut gpushare_queue) -> gpushare_status;
    pub fn gpushare_queue_retain(queue: *mut gpushare_queue) -> gpushare_status;
    pub fn gpushare_queue_release(queue: *mut gpushare_queue) -> gpushare_status;
    pub fn gpushare_kernel_register(runtime: *mut gpushare_runtime, options: *const gpushare_kernel_options, out_kernel: *mut *mut gpushare_kernel) -> gpushare_status;
    pub fn gpushare_kernel_register_ptx(runtime: *mut gpushare_runtime, options: *const gpushare_kernel_options, code: *const gpushare_ptx_code, out_kernel: *mut *mut gpushare_kernel) -> gpushare_status;
    pub fn gpushare_ptx_entries(code: *const gpushare_ptx_code, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_ptx_check(code: *const gpushare_ptx_code, form: gpushare_form, out_line: *mut u32, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_ptx_transform(code: *const gpushare_ptx_code, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_kernel_retain(kernel: *mut gpushare_kernel) -> gpushare_status;
    pub fn gpushare_kernel_release(kernel: *mut gpushare_kernel) -> gpushare_status;
    pub fn gpushare_kernel_info_by_name(runtime: *mut gpushare_runtime, name: *const c_char, out_info: *mut gpushare_kernel_info) -> gpushare_status;
    pub fn gpushare_profile_kernel_names(runtime: *mut gpushare_runtime, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_fused_kernel_register(runtime: *mut gpushare_runtime, options: *const gpushare_fused_kernel_options, out_fused: *mut *mut gpushare_fused_kernel) -> gpushare_status;
    pub fn gpushare_fused_kernel_retain(fused: *mut gpushare_fused_kernel) -> gpushare_status;
    pub fn gpushare_fused_kernel_release(fused: *mut gpushare_fused_kernel) -> gpushare_status;
    pub fn gpushare_query_begin(queue: *mut gpushare_queue, arrival_ns: i64, out_query: *mut gpushare_query) -> gpushare_status;
    pub fn gpushare_query_begin_with(queue: *mut gpushare_queue, options: *const gpushare_query_options, out_query: *mut gpushare_query) -> gpushare_status;
    pub fn gpushare_query_end(runtime: *mut gpushare_runtime, query: gpushare_query) -> gpushare_status;
    pub fn gpushare_query_abandon(app: *mut gpushare_app, idle_ns: i64, out_count: *mut i32) -> gpushare_status;
    pub fn gpushare_token_stream_begin(app: *mut gpushare_app, arrival_ns: i64, out_stream: *mut gpushare_token_stream) -> gpushare_status;
    pub fn gpushare_token_stream_mark(runtime: *mut gpushare_runtime, streams: *const gpushare_token_stream, count: u32, ticket: gpushare_ticket) -> gpushare_status;
    pub fn gpushare_token_stream_end(runtime: *mut gpushare_runtime, stream: gpushare_token_stream) -> gpushare_status;
    pub fn gpushare_submit_lc(queue: *mut gpushare_queue, options: *const gpushare_task_options, out_ticket: *mut gpushare_ticket) -> gpushare_status;
    pub fn gpushare_submit_be(queue: *mut gpushare_queue, options: *const gpushare_task_options, out_ticket: *mut gpushare_ticket) -> gpushare_status;
    pub fn gpushare_enqueue_fail(reason: *const c_char) -> gpushare_status;
    pub fn gpushare_region_begin(queue: *mut gpushare_queue, options: *const gpushare_region_options, out_ticket: *mut gpushare_ticket, out_stream: *mut *mut c_void) -> gpushare_status;
    pub fn gpushare_region_room(runtime: *mut gpushare_runtime, out_room_ns: *mut i64) -> gpushare_status;
    pub fn gpushare_region_end(runtime: *mut gpushare_runtime, region: gpushare_ticket) -> gpushare_status;
    pub fn gpushare_ticket_wait(runtime: *mut gpushare_runtime, ticket: gpushare_ticket, deadline_ns: i64) -> gpushare_status;
    pub fn gpushare_run_lc(queue: *mut gpushare_queue, options: *const gpushare_task_options, deadline_ns: i64, out_verdict: *mut gpushare_verdict, out_ticket: *mut gpushare_ticket) -> gpushare_status;
    pub fn gpushare_ticket_poll(runtime: *mut gpushare_runtime, ticket: gpushare_ticket, out_complete: *mut gpushare_bool) -> gpushare_status;
    pub fn gpushare_ticket_record(runtime: *mut gpushare_runtime, ticket: gpushare_ticket, out_record: *mut gpushare_completion_record) -> gpushare_status;
    pub fn gpushare_ticket_set_callback(runtime: *mut gpushare_runtime, ticket: gpushare_ticket, callback: gpushare_completion_callback, user: *mut c_void) -> gpushare_status;
    pub fn gpushare_ticket_eventfd(runtime: *mut gpushare_runtime, ticket: gpushare_ticket, out_fd: *mut c_int) -> gpushare_status;
    pub fn gpushare_ticket_cancel(runtime: *mut gpushare_runtime, ticket: gpushare_ticket) -> gpushare_status;
    pub fn gpushare_ticket_release(runtime: *mut gpushare_runtime, ticket: gpushare_ticket) -> gpushare_status;
    pub fn gpushare_device_info_get(runtime: *mut gpushare_runtime, out_info: *mut gpushare_device_info) -> gpushare_status;
    pub fn gpushare_guarantees(runtime: *mut gpushare_runtime, kind: gpushare_task_kind, kernel: *mut gpushare_kernel, out_guarantees: *mut u32) -> gpushare_status;
    pub fn gpushare_runtime_stats_get(runtime: *mut gpushare_runtime, out_stats: *mut gpushare_runtime_stats) -> gpushare_status;
    pub fn gpushare_app_stats_get(app: *mut gpushare_app, out_stats: *mut gpushare_app_stats) -> gpushare_status;
    pub fn gpushare_app_guarantee_get(app: *mut gpushare_app, out_guarantee: *mut gpushare_app_guarantee) -> gpushare_status;
    pub fn gpushare_app_id(app: *mut gpushare_app) -> u32;
    pub fn gpushare_kernel_id(kernel: *mut gpushare_kernel) -> u32;
    pub fn gpushare_metrics_text(runtime: *mut gpushare_runtime, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_trace_start(runtime: *mut gpushare_runtime, options: *const gpushare_trace_options) -> gpushare_status;
    pub fn gpushare_trace_stop(runtime: *mut gpushare_runtime, out_summary: *mut gpushare_trace_summary) -> gpushare_status;
    pub fn gpushare_event_type_name(r#type: gpushare_event_type) -> *const c_char;
    pub fn gpushare_event_log_open(path: *const c_char, out_log: *mut *mut gpushare_event_log, out_count: *mut i64) -> gpushare_status;
    pub fn gpushare_event_log_get(log: *mut gpushare_event_log, index: i64, out_event: *mut gpushare_event) -> gpushare_status;
    pub fn gpushare_event_log_retain(log: *mut gpushare_event_log) -> gpushare_status;
    pub fn gpushare_event_log_release(log: *mut gpushare_event_log) -> gpushare_status;
    pub fn gpushare_replay_open(log: *mut gpushare_event_log, options: *const gpushare_runtime_options, out_runtime: *mut *mut gpushare_runtime) -> gpushare_status;
    pub fn gpushare_replay_run(runtime: *mut gpushare_runtime, out_result: *mut gpushare_replay_result) -> gpushare_status;
    pub fn gpushare_replay_difference(runtime: *mut gpushare_runtime, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_calibrate(options: *const gpushare_calibration_options, progress: gpushare_calibration_callback, user: *mut c_void) -> gpushare_status;
    pub fn gpushare_kernel_pre_run(options: *const gpushare_pre_run_options, out_counters: *mut gpushare_kernel_counters) -> gpushare_status;
    pub fn gpushare_evaluate_models(samples_path: *const c_char, judge: gpushare_judge_callback, user: *mut c_void) -> gpushare_status;
    pub fn gpushare_place(options: *const gpushare_place_options, gpus: *const gpushare_place_gpu, gpu_count: usize, lc: *const gpushare_place_lc, lc_count: usize, be: *const gpushare_place_be, be_count: usize, pairs: *const gpushare_place_pair, pair_count: usize, running: *const i32, out_gpu: *mut i32, out_count: usize, out_result: *mut gpushare_place_result) -> gpushare_status;
    pub fn gpushare_predict_pair(runtime: *mut gpushare_runtime, query: *const gpushare_pair_launch, query_count: usize, be: *const gpushare_pair_launch, p99_bound: f64, inout_pair: *mut gpushare_place_pair) -> gpushare_status;
    pub fn gpushare_profile_load(runtime: *mut gpushare_runtime, path: *const c_char) -> gpushare_status;
    pub fn gpushare_profile_save(runtime: *mut gpushare_runtime, path: *const c_char) -> gpushare_status;
    pub fn gpushare_profile_validate(path: *const c_char) -> gpushare_status;
    pub fn gpushare_profile_train(options: *const gpushare_profile_train_options) -> gpushare_status;
    pub fn gpushare_profile_like(options: *const gpushare_profile_like_options, buffer: *mut c_char, buffer_size_bytes: usize, out_size_bytes: *mut usize) -> gpushare_status;
    pub fn gpushare_set_user_policy(runtime: *mut gpushare_runtime, table: *const gpushare_policy_table) -> gpushare_status;
    pub fn gpushare_set_user_cost_model(runtime: *mut gpushare_runtime, table: *const gpushare_cost_model_table) -> gpushare_status;
}
