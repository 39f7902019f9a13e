// A cost model of the application's own: functions that predict durations and speeds, in a
// versioned table.
//
// Installed as <gpushare/gpushare_cost_model.h>; compiles as C99 to C23 and as C++17 to C++23.
//
// Call sequence
// - Fill a gpushare_cost_model_table, made with its _INIT macro, and call
//   gpushare_set_user_cost_model, at best before the first submit.
// - The library calls predict_solo once for each task, predict_beside when it makes its table of
//   pairs anew, both in gpushare_predict_pair, and observe with each measured duration. It makes
//   one call at a time. A function that is null, or returns 0, leaves the answer to the built-in
//   model, which goes on learning from what is measured.
// - The library calls destroy once, when the model is replaced or the runtime ends.
//   examples/user_cost_model.c is a complete model.
//
// Rules for the functions of the table
// - They call no function of gpushare. They do not allocate, block or throw, and a prediction takes
//   well under a microsecond.
// - Two predictions for the same arguments are equal, unless observe returned 1 in between.
// - What a pointer argument points to lives for the call. Kernel names live as long as the runtime.
//
// Versions
// - A struct that the library fills starts with struct_size and may grow at its end. Step through
//   `beside` by its stride. What a model writes (gpushare_prediction and
//   gpushare_co_resident_prediction) never changes in one version of the table.
//
// Answers that are not used
// - A number out of its range, a result other than 0 and 1, and a reserved field that is not 0. The
//   built-in model answers instead, also after an exception. The log has the first of each kind of
//   a table, and the metric gpushare_predictions_refused counts them.
#ifndef GPUSHARE_GPUSHARE_COST_MODEL_H_
#define GPUSHARE_GPUSHARE_COST_MODEL_H_

#include <gpushare/gpushare.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPUSHARE_COST_MODEL_VERSION 1

// --- what is asked -------------------------------------------------------------------------------

// A task whose duration alone on the whole device a model predicts.
typedef struct gpushare_task_features {
  uint32_t struct_size;
  uint32_t kernel_id;       // as gpushare_kernel_id gives it; 0: a copy, or opaque work
  const char* kernel_name;  // null without a kernel
  gpushare_task_kind kind;
  uint32_t app_id;
  int64_t block_tasks;  // KERNEL, else 0
  int64_t size_bytes;   // MEMCPY, else 0
  int64_t declared_ns;  // OPAQUE: the bound that its caller declared
  gpushare_copy_direction direction;
  gpushare_bool pinned;  // MEMCPY: the host memory is pinned
} gpushare_task_features;

// A kernel on SMs that nothing else uses.
typedef struct gpushare_confined_kernel {
  uint32_t struct_size;
  uint32_t kernel_id;
  const char* kernel_name;
  int32_t sms;
  int32_t reserved;
} gpushare_confined_kernel;

// The two parts of a launch of a fused kernel.
typedef struct gpushare_fused_features {
  uint32_t struct_size;
  int32_t blocks_per_sm;  // fused blocks that an SM holds
  const char* name;       // of the fused kernel
  uint32_t tensor_kernel_id;
  uint32_t cuda_kernel_id;
  int32_t tensor_blocks;  // blocks of the TC part in one fused block
  int32_t cuda_blocks;    // blocks of the CD part in one fused block
  int64_t tensor_block_tasks;
  int64_t cuda_block_tasks;
  double opportune_load_ratio;      // load ratio where both parts end together
  double opportune_duration_ratio;  // the fused duration there over the TC part's own
} gpushare_fused_features;

// One of two kernels whose workers share every SM.
typedef struct gpushare_co_resident_side {
  uint32_t struct_size;
  uint32_t kernel_id;
  const char* kernel_name;
  int32_t workers_per_sm;
  int32_t reserved;
  int64_t block_tasks;
} gpushare_co_resident_side;

// --- what a model answers ------------------------------------------------------------------------

typedef struct gpushare_prediction {
  int64_t duration_ns;    // 1 ns to one hour
  int64_t error_ns;       // one standard deviation of the model's error; 0 to one hour
  gpushare_bool trained;  // 1: it comes from measurements; 0: a guess
  int32_t reserved;       // must be 0
} gpushare_prediction;

// Both kernels start at once. When one has ended, the other runs on alone with the workers that it
// has.
typedef struct gpushare_co_resident_prediction {
  double speed[2];     // while both run, relative to alone on the whole device; 0.001 to 1
  double speed_error;  // one standard deviation of the relative error of a speed; 0 to 1
  gpushare_prediction finish[2];  // from the common start
} gpushare_co_resident_prediction;

// --- what was measured ---------------------------------------------------------------------------

// A kernel that ran beside a measured launch from that launch's start.
typedef struct gpushare_co_resident_view {
  const char* kernel_name;  // null without a kernel
  uint32_t kernel_id;
  int32_t sms;             // SMs of the neighbour; 0: it came later, or others ran too
  gpushare_bool same_sms;  // it was on the launch's SMs, and the launch waited until it had left
  int32_t reserved;
} gpushare_co_resident_view;

// One measurement.
typedef struct gpushare_observation {
  uint32_t struct_size;
  gpushare_form form;
  const gpushare_task_features* task;
  const gpushare_fused_features* fused;     // FUSED with both parts ended, else null
  const gpushare_co_resident_view* beside;  // the worst first
  uint32_t beside_count;                    // 0: the task ran alone
  uint32_t beside_stride;
  // SMs of the launch. 0: the task had several launches, and measured_ns is an estimate of its time
  // on the whole device.
  int32_t sms;
  int32_t workers;
  int64_t predicted_ns;
  int64_t measured_ns;    // time on the device; with `evicted` the eviction latency
  gpushare_bool evicted;  // measured_ns is the time from the eviction until the last worker left
  int32_t reserved;
} gpushare_observation;

// --- the table -----------------------------------------------------------------------------------

// Threads, for all callbacks: the one that drives the flow (the scheduler's, or the one that polls
// or waits); one call at a time. Result of the predict functions: 1, the answer is written; 0, the
// built-in model answers. What they write into starts as zeros.

// The duration of `task` alone on the whole device.
typedef gpushare_bool (*gpushare_predict_solo_callback)(void* user,
                                                        const gpushare_task_features* task,
                                                        gpushare_prediction* prediction);

// The factor (0.001 to 1) on the speed of `kernel` on its SMs while `neighbour` runs on the others;
// 1: undisturbed. A pair with an answer counts as known, and is not tried out.
typedef gpushare_bool (*gpushare_predict_beside_callback)(void* user,
                                                          const gpushare_confined_kernel* kernel,
                                                          const gpushare_confined_kernel* neighbour,
                                                          double* factor);

// The duration of one fused launch of both parts on the whole device.
typedef gpushare_bool (*gpushare_predict_fused_callback)(void* user,
                                                         const gpushare_fused_features* fused,
                                                         gpushare_prediction* prediction);

// Speeds and finish times of two kernels that share every SM; [0] is `first`.
typedef gpushare_bool (*gpushare_predict_co_resident_callback)(
    void* user, const gpushare_co_resident_side* first, const gpushare_co_resident_side* second,
    gpushare_co_resident_prediction* prediction);

// Receives a measurement. It is a duration alone only if beside_count is 0. Returns 1 if later
// answers of predict_beside, predict_fused or predict_co_resident may differ; the library then asks
// for them again. Else returns 0.
typedef gpushare_bool (*gpushare_observe_callback)(void* user,
                                                   const gpushare_observation* observation);

// The cost model. Make it with GPUSHARE_COST_MODEL_TABLE_INIT. Every function may be null.
typedef struct gpushare_cost_model_table {
  uint32_t struct_size;
  uint32_t version;  // GPUSHARE_COST_MODEL_VERSION; the _INIT macro sets it
  const char* name;  // copied; at most 63 bytes; must be given
  gpushare_predict_solo_callback predict_solo;
  gpushare_predict_beside_callback predict_beside;
  gpushare_predict_fused_callback predict_fused;
  gpushare_predict_co_resident_callback predict_co_resident;
  gpushare_observe_callback observe;
  // Runs once, when the model is replaced or the runtime ends: the place to free `user`.
  void (*destroy)(void* user);
  void* user;  // passed to all functions
} gpushare_cost_model_table;
#ifdef __cplusplus
extern "C++" {
template <>
constexpr gpushare_cost_model_table gpushare_detail_init<gpushare_cost_model_table>() noexcept {
  gpushare_cost_model_table value{};
  value.struct_size = static_cast<uint32_t>(sizeof(value));
  value.version = GPUSHARE_COST_MODEL_VERSION;
  return value;
}
}
#define GPUSHARE_COST_MODEL_TABLE_INIT GPUSHARE_STRUCT_INIT(gpushare_cost_model_table)
#else
#define GPUSHARE_COST_MODEL_TABLE_INIT                          \
  {                                                             \
    .struct_size = (uint32_t)sizeof(gpushare_cost_model_table), \
    .version = GPUSHARE_COST_MODEL_VERSION                      \
  }
#endif

// Replaces the cost model by the caller's own, between two passes of the flow. A null table
// restores the built-in model with all that it has learned. Tasks that were predicted before keep
// their predictions. Profiles keep what the built-in model learned, and nothing of this one.
// Threads: any. Owns: the table is copied. If the call succeeds, `user` must live until destroy
// runs; if it fails, destroy never runs. Blocks: until the current pass of the flow ends.
// Errors: INVALID_ARGUMENT no name; UNIMPLEMENTED another version.
GPUSHARE_API gpushare_status gpushare_set_user_cost_model(
    gpushare_runtime* runtime, const gpushare_cost_model_table* table) GPUSHARE_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_GPUSHARE_COST_MODEL_H_
