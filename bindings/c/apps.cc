// Apps, queues and reservations. Threads: any.

#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bindings/c/announce.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"
#include "src/models/partition/layout_planner.h"
#include "src/models/partition/task_set.h"

namespace gpushare::abi {
namespace {

// A caller who gives a BE app a target expects an effect.
absl::Status CheckBe(const gpushare_app_options& options) {
  if (options.target_ns == 0 && options.p99_bound == 0 && options.p50_bound == 0 &&
      options.p99_alone_ns == 0 && options.solo_ns == 0 && options.drop_late == 0 &&
      options.bounds_tokens == 0 && options.neighbour_factor == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "BE app '", options.name, "' states a target (target_ns ", options.target_ns, ", p99_bound ",
      options.p99_bound, ", p50_bound ", options.p50_bound, ", p99_alone_ns ", options.p99_alone_ns,
      ", solo_ns ", options.solo_ns, ", drop_late ", options.drop_late, ", bounds_tokens ",
      options.bounds_tokens, ", neighbour_factor ", options.neighbour_factor,
      "), and only an LC app has one."));
}

// The core checks what the options mean together, the planner the curve.
absl::StatusOr<core::RealTimeOptions> RealTimeOf(const gpushare_app_options& options) {
  core::RealTimeOptions out;
  out.period_ns = options.period_ns;
  out.deadline_ns = options.deadline_ns;
  out.eviction_ns = options.job_eviction_ns;
  if (options.neighbour_factor != 0) out.neighbour_factor = options.neighbour_factor;
  if (!(out.neighbour_factor >= 1 &&
        out.neighbour_factor <= models::partition::kNeighbourFactorMax)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "app_options.neighbour_factor is ", options.neighbour_factor,
        ", and it must be 0 or lie between 1 and ", models::partition::kNeighbourFactorMax, "."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("app_options", options.reserved3, "reserved3"));
  if (options.worst_case_count > models::partition::kSmsMax ||
      (options.worst_cases == nullptr) != (options.worst_case_count == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "app_options.worst_case_count is ", options.worst_case_count, " and worst_cases is ",
        options.worst_cases == nullptr ? "null" : "an array", "; a list has 1 to ",
        models::partition::kSmsMax, " entries, and without one both are 0."));
  }
  for (uint32_t i = 0; i < options.worst_case_count; ++i) {
    const gpushare_worst_case& point = options.worst_cases[i];
    GPUSHARE_RETURN_IF_ERROR(CheckReserved("worst_case", point.reserved));
    out.worst_cases.push_back({.sms = point.sms, .ns = point.worst_ns});
  }
  return out;
}

absl::StatusOr<core::AppOptions> AppOptionsOf(const gpushare_app_options& options) {
  GPUSHARE_RETURN_IF_ERROR(CheckName("app_options.name", options.name));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("app_options.drop_late", options.drop_late));
  GPUSHARE_RETURN_IF_ERROR(CheckBool("app_options.bounds_tokens", options.bounds_tokens));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("app_options", options.reserved));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("app_options", options.reserved2, "reserved2"));
  core::AppOptions out;
  out.name = options.name;
  switch (options.app_class) {
    case GPUSHARE_CLASS_LATENCY_CRITICAL:
      out.app_class = core::AppClass::kLatencyCritical;
      break;
    case GPUSHARE_CLASS_BEST_EFFORT:
      GPUSHARE_RETURN_IF_ERROR(CheckBe(options));
      out.app_class = core::AppClass::kBestEffort;
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("The class of app '", out.name, "' is ", options.app_class,
                       ", and it is either 1 (latency-critical) or 2 (best-effort)."));
  }
  out.promise.target_ns = options.target_ns;
  out.promise.p99_bound = options.p99_bound;
  out.promise.p50_bound = options.p50_bound;
  out.promise.p99_alone_ns = options.p99_alone_ns;
  out.solo_ns = options.solo_ns;
  out.drop_late = options.drop_late == 1;
  if (options.weight != 0) out.weight = options.weight;
  if (options.tasks_max != 0) out.tasks_max = options.tasks_max;
  if (options.idle_timeout_ns != 0) out.idle_timeout_ns = options.idle_timeout_ns;
  out.priority = options.priority;
  out.yield_ns_max = options.yield_ns_max;
  out.bounds_tokens = options.bounds_tokens == 1;
  GPUSHARE_ASSIGN_OR_RETURN(out.real_time, RealTimeOf(options));
  return out;
}

absl::StatusOr<core::AppUpdate> AppUpdateOf(const gpushare_app_update_options& options) {
  constexpr uint32_t kKnown = 2 * GPUSHARE_APP_FIELD_PRIORITY - 1;
  if (options.fields == 0 || (options.fields & ~kKnown) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("app_update_options.fields is ", options.fields,
                     ", and it must be a sum of bits of gpushare_app_field_bit, at least one."));
  }
  core::AppUpdate out;
  absl::Status unnamed = absl::OkStatus();
  const auto read = [&](const char* name, uint32_t bit, const auto& field, auto& value) {
    if ((options.fields & bit) != 0) {
      value = field;
    } else if (field != 0) {
      unnamed = absl::InvalidArgumentError(
          absl::StrCat("app_update_options.", name, " is ", field,
                       ", and app_update_options.fields does not name it."));
    }
  };
  read("target_ns", GPUSHARE_APP_FIELD_TARGET_NS, options.target_ns, out.promise.target_ns);
  read("p99_bound", GPUSHARE_APP_FIELD_P99_BOUND, options.p99_bound, out.promise.p99_bound);
  read("p50_bound", GPUSHARE_APP_FIELD_P50_BOUND, options.p50_bound, out.promise.p50_bound);
  read("p99_alone_ns", GPUSHARE_APP_FIELD_P99_ALONE_NS, options.p99_alone_ns,
       out.promise.p99_alone_ns);
  read("weight", GPUSHARE_APP_FIELD_WEIGHT, options.weight, out.weight);
  read("priority", GPUSHARE_APP_FIELD_PRIORITY, options.priority, out.priority);
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("app_update_options", options.reserved));
  if (!unnamed.ok()) return unnamed;
  if (out.weight && *out.weight == 0) out.weight = 1;
  return out;
}

// Once the scheduler has the app, nothing fails: what is to be stored is made before.
absl::Status CreateApp(AppObject& app, const core::AppOptions& options) {
  RuntimeObject& runtime = *app.runtime;
  std::set<std::string> live_name = {options.name};
  std::map<uint32_t, std::string> name = {{0, options.name}};
  core::MutexLock lock(&runtime.mutex);
  if (runtime.live_app_names.count(options.name) != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("The runtime has an app '", options.name, "' already."));
  }
  const absl::StatusOr<core::AppId> id = runtime.scheduler->CreateApp(options);
  if (!id.ok()) return id.status();
  app.id = *id;
  app.released = false;
  runtime.live_app_names.merge(live_name);
  auto named = name.extract(name.begin());
  named.key() = id->value;
  runtime.app_names.insert(std::move(named));
  return absl::OkStatus();
}

// A trace that runs still needs the name, which goes when the trace stops (trace.cc). In a trace
// that goes on for ever, apps that come and go are named up to this number.
constexpr size_t kNamesInTraceMax = 65536;

void ForgetName(AppObject& app) {
  app.released = true;
  RuntimeObject& runtime = *app.runtime;
  core::MutexLock lock(&runtime.mutex);
  runtime.live_app_names.erase(app.name);
  if (!runtime.trace.running() || runtime.app_names.size() > kNamesInTraceMax) {
    runtime.app_names.erase(app.id.value);
  }
}

// Releases the app with its last handle. While queues of the app are left, they keep it.
absl::Status ReleaseLast(AppObject& app) {
  GPUSHARE_RETURN_IF_ERROR(CheckMayEnd(app.runtime, 1));
  if (app.weak_from_this().use_count() > 1) return absl::OkStatus();  // queues keep it
  absl::Status status = app.runtime->scheduler->ReleaseApp(app.id);
  if (!status.ok() && !app.runtime->shut_down.load()) return status;
  ForgetName(app);
  return absl::OkStatus();
}

absl::Status ReleaseLast(QueueObject& queue) {
  // If this queue holds the app's only reference, the app and its reference to the runtime go too.
  const bool last_of_app = queue.app.use_count() == 1;
  GPUSHARE_RETURN_IF_ERROR(CheckMayEnd(queue.app->runtime, last_of_app ? 1 : 0));
  core::Scheduler& scheduler = *queue.runtime->scheduler;
  const absl::Status status =
      last_of_app ? scheduler.ReleaseApp(queue.app->id) : scheduler.ReleaseQueue(queue.id);
  if (last_of_app && status.ok()) ForgetName(*queue.app);
  return queue.runtime->shut_down.load() ? absl::OkStatus() : status;
}

}  // namespace

AppObject::~AppObject() {
  if (released) return;
  // Two threads released its last two handles at once, or the runtime is shut down.
  try {
    const absl::Status status = runtime->scheduler->ReleaseApp(id);
    if (!status.ok() && !runtime->shut_down.load()) {
      runtime->log.Write(
          GPUSHARE_LOG_WARNING,
          absl::StrCat("App '", name, "' stays until its runtime ends: ", status.message()));
    }
  } catch (const std::bad_alloc&) {  // for the message; the app stays
    runtime->log.Write(GPUSHARE_LOG_WARNING, "An app stays until its runtime ends.");
  }
  ForgetName(*this);
}

}  // namespace gpushare::abi

using gpushare::abi::Enter;

gpushare_status gpushare_app_create(gpushare_runtime* runtime, const gpushare_app_options* options,
                                    gpushare_app** out_app) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_app", out_app));
    *out_app = nullptr;
    gpushare_app_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("app_options", options, &known));
    const auto converted = gpushare::abi::AppOptionsOf(known);
    if (!converted.ok()) return converted.status();
    const auto app = std::make_shared<gpushare::abi::AppObject>(
        object->shared_from_this(), converted->app_class, converted->name);
    gpushare::abi::NewHandle<gpushare_app> handle;
    GPUSHARE_RETURN_IF_ERROR(handle.Make(app));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CreateApp(*app, *converted));
    gpushare::abi::AnnounceApp(*object, *converted);
    *out_app = handle.Keep();
    return absl::OkStatus();
  });
}

gpushare_status gpushare_app_update(gpushare_app* app,
                                    const gpushare_app_update_options* options) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    gpushare_app_update_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("app_update_options", options, &known));
    GPUSHARE_ASSIGN_OR_RETURN(const gpushare::core::AppUpdate update,
                              gpushare::abi::AppUpdateOf(known));
    return object->runtime->scheduler->UpdateApp(object->id, update);
  });
}

gpushare_status gpushare_app_retain(gpushare_app* app) noexcept {
  return Enter([&] { return gpushare::abi::Retain(app); });
}

gpushare_status gpushare_app_release(gpushare_app* app) noexcept {
  return Enter([&] {
    return gpushare::abi::Release(app, [&]() -> absl::Status {
      GPUSHARE_FIND(object, app);
      return gpushare::abi::ReleaseLast(*object);
    });
  });
}

uint32_t gpushare_app_id(gpushare_app* app) noexcept {
  const gpushare::abi::AppObject* const object = gpushare::abi::Find(app);
  return object == nullptr ? 0 : object->id.value;
}

gpushare_status gpushare_reserve_capsm(gpushare_app* app,
                                       const gpushare_reservation_options* options) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    gpushare_reservation_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("reservation_options", options, &known));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckBool("reservation_options.packed", known.packed));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckReserved("reservation_options", known.reserved));
    gpushare::core::ReservationOptions reservation;
    reservation.app = object->id;
    reservation.capsms = known.capsms;
    reservation.packed = known.packed == 1;
    return object->runtime->scheduler->ReserveCapSm(reservation);
  });
}

gpushare_status gpushare_plan_partitions(gpushare_runtime* runtime,
                                         const gpushare_partition_options* options,
                                         gpushare_partition_plan* out_plan) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    gpushare_partition_options known;
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::ReadOptions("partition_options", options, &known));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_plan", out_plan));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckBool("partition_options.share", known.share));
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckReserved("partition_options", known.reserved));
    const gpushare::core::PartitionOptions wanted = {.shares = known.share == 1,
                                                     .slack_eviction_ns = known.slack_eviction_ns,
                                                     .reserved_sms = known.reserved_sms};
    const gpushare::models::partition::LayoutPlanner planner;
    GPUSHARE_ASSIGN_OR_RETURN(const gpushare::core::PartitionSummary summary,
                              object->scheduler->PlanPartitions(planner, wanted));
    gpushare_partition_plan plan = {};
    plan.partitions = summary.partitions;
    plan.partition_sms = summary.partition_sms;
    plan.rest_sms = summary.rest_sms;
    return gpushare::abi::WriteResult("partition_plan", plan, out_plan);
  });
}

gpushare_status gpushare_queue_create(gpushare_app* app, gpushare_queue** out_queue) noexcept {
  return Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, app);
    GPUSHARE_RETURN_IF_ERROR(gpushare::abi::CheckNotNull("out_queue", out_queue));
    *out_queue = nullptr;
    const auto queue = std::make_shared<gpushare::abi::QueueObject>(object->shared_from_this());
    gpushare::abi::NewHandle<gpushare_queue> handle;
    GPUSHARE_RETURN_IF_ERROR(handle.Make(queue));
    const auto id = object->runtime->scheduler->CreateQueue(object->id);
    if (!id.ok()) return id.status();
    queue->id = *id;
    *out_queue = handle.Keep();
    return absl::OkStatus();
  });
}

gpushare_status gpushare_queue_retain(gpushare_queue* queue) noexcept {
  return Enter([&] { return gpushare::abi::Retain(queue); });
}

gpushare_status gpushare_queue_release(gpushare_queue* queue) noexcept {
  return Enter([&] {
    return gpushare::abi::Release(queue, [&]() -> absl::Status {
      GPUSHARE_FIND(object, queue);
      return gpushare::abi::ReleaseLast(*object);
    });
  });
}
