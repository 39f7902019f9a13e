// The objects behind the handles.
//
// Children hold their parents by shared_ptr, so that a runtime lives until its last app, queue and
// kernel is released, whatever order the caller releases in. Threads: fields are immutable after
// creation unless a mutex is named.

#ifndef GPUSHARE_BINDINGS_C_OBJECTS_H_
#define GPUSHARE_BINDINGS_C_OBJECTS_H_

#include <gpushare/gpushare.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bindings/c/callbacks.h"
#include "bindings/c/log.h"
#include "bindings/c/trace_switch.h"
#include "src/core/base/mutex.h"
#include "src/core/flow/scheduler.h"
#include "src/core/log/event_log.h"
#include "src/core/replay/replay.h"
#include "src/models/profile/profile.h"

namespace gpushare::abi {

class UserCostModel;

struct EventLogObject : std::enable_shared_from_this<EventLogObject> {
  core::EventLogFile file;
};

// Of a runtime that replays a log.
struct ReplayObject {
  std::shared_ptr<const EventLogObject> log;
  std::unique_ptr<core::Replayer> replayer;
  core::Mutex mutex;
  bool begun ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;
  core::ReplayResult result ABSL_GUARDED_BY(mutex);
};

struct RuntimeObject : std::enable_shared_from_this<RuntimeObject> {
  explicit RuntimeObject(Log the_log) : log(the_log) {}
  // Shuts the scheduler down within shutdown_timeout_ns.
  ~RuntimeObject();

  Log log;
  std::string device_name;   // "cuda", "sim", "null"
  std::string profile_name;  // of the profile at creation
  std::string policy_name;   // at creation
  uint64_t seed = 0;
  bool polled = false;  // no scheduler thread
  int64_t shutdown_timeout_ns = 0;
  // Set by the first shutdown. After it, apps and queues can always be released.
  std::atomic<bool> shut_down{false};

  // Order matters: the scheduler is destroyed first, then what it points to.
  std::unique_ptr<ArrangementNotes> notes;  // null: nothing is announced
  TraceSwitch trace;
  std::unique_ptr<ReplayObject> replay;  // null: the runtime replays nothing
  CallbackPool callbacks;
  std::unique_ptr<core::Scheduler> scheduler;
  UserCostModel* cost_model = nullptr;  // the scheduler's; used inside ChangeModel only

  mutable core::Mutex mutex;
  models::Profile profile ABSL_GUARDED_BY(mutex);
  std::set<std::string> live_app_names ABSL_GUARDED_BY(mutex);
  // Names for traces. Those of apps that are released during a trace stay until it stops.
  std::map<uint32_t, std::string> app_names ABSL_GUARDED_BY(mutex);
  // Registered kernels that have a handle. The scheduler keeps them for its life.
  std::map<std::string, const core::KernelDesc*> kernels ABSL_GUARDED_BY(mutex);
  // Names for traces, of released kernels too, until another one has their identifier.
  std::map<uint32_t, std::string> kernel_names ABSL_GUARDED_BY(mutex);
  std::set<std::string> fused_kernel_names ABSL_GUARDED_BY(mutex);
  // Names in registration, as "kernel 'name'" or "fused kernel 'name'". A registration does not
  // hold the mutex.
  std::set<std::string> registering ABSL_GUARDED_BY(mutex);
  std::string perfetto_path ABSL_GUARDED_BY(mutex);
  std::string event_log_path ABSL_GUARDED_BY(mutex);
  bool trace_of_environment ABSL_GUARDED_BY(mutex) = false;  // GPUSHARE_TRACE started it
};

struct AppObject : std::enable_shared_from_this<AppObject> {
  AppObject(std::shared_ptr<RuntimeObject> the_runtime, core::AppClass the_class,
            std::string the_name)
      : runtime(std::move(the_runtime)), app_class(the_class), name(std::move(the_name)) {}
  // Releases the app in the scheduler, unless that is done already.
  ~AppObject();

  std::shared_ptr<RuntimeObject> runtime;
  core::AppId id;  // set by its creation, after which the handle leaves the library
  core::AppClass app_class;
  std::string name;
  // Not in the scheduler: not yet created, or released by the thread that drops the last handle.
  bool released = true;
};

struct QueueObject {
  explicit QueueObject(std::shared_ptr<AppObject> the_app)
      : app(std::move(the_app)), runtime(app->runtime.get()) {}

  std::shared_ptr<AppObject> app;
  RuntimeObject* runtime;  // the app's; saves submits one indirection
  core::QueueId id;        // set by its creation, after which the handle leaves the library
};

struct KernelObject {
  // Nobody can submit the kernel any more.
  ~KernelObject();

  std::shared_ptr<RuntimeObject> runtime;
  core::KernelId id;
  core::TaskKind kind = core::TaskKind::kKernel;
  bool evictable = false;
  bool confinable = false;
};

struct FusedKernelObject {
  // Its name is free.
  ~FusedKernelObject();

  std::shared_ptr<RuntimeObject> runtime;
  std::string name;
  core::KernelId id;
};

// Opens the device and the scheduler. `replay` may be null.
absl::StatusOr<std::shared_ptr<RuntimeObject>> OpenRuntime(const gpushare_runtime_options* options,
                                                           std::unique_ptr<ReplayObject> replay);

// The trace that GPUSHARE_TRACE asks for: from the runtime's creation to its end, or until the
// application starts one of its own. A file that cannot be written in the end is logged.
absl::Status StartTraceOfEnvironment(RuntimeObject& runtime);
void EndTraceOfEnvironment(RuntimeObject& runtime);

// FAILED_PRECONDITION if dropping `own_references` references here would end the runtime inside one
// of its own callbacks, which would wait for itself.
absl::Status CheckMayEnd(const std::shared_ptr<RuntimeObject>& runtime, long own_references);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_OBJECTS_H_
