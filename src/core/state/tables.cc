// Registration and look-up of apps, queues, kernels, queries and task slots. See tables.h.

#include "src/core/state/tables.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/ids.h"
#include "src/core/checks/kernel_check.h"

namespace gpushare::core {
namespace {

absl::Status CheckName(const char* what, const std::string& name) {
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("The ", what, " has no name."));
  }
  if (name.size() >= kMaxNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("The ", what, " name has ", name.size(),
                                                   " bytes, and the limit is ", kMaxNameBytes - 1,
                                                   "."));
  }
  return absl::OkStatus();
}

absl::Status CheckDuration(const char* what, const std::string& name, int64_t value_ns) {
  if (value_ns >= 0 && value_ns <= kMaxDurationNs) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " of '", name, "' is ", value_ns,
                                                 " ns, and it must lie between 0 and ",
                                                 kMaxDurationNs, " ns."));
}

// How an LC app goes with other LC apps.
absl::Status CheckAmongLc(const AppOptions& options) {
  if (options.app_class == AppClass::kBestEffort &&
      (options.priority != 0 || options.yield_ns_max != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("BE app '", options.name, "' states a priority (priority ", options.priority,
                     ", yield_ns_max ", options.yield_ns_max,
                     "), and only an LC app has one; a BE app has a weight."));
  }
  if (options.priority < -kMaxPriority || options.priority > kMaxPriority) {
    return absl::InvalidArgumentError(absl::StrCat("The priority of app '", options.name, "' is ",
                                                   options.priority, ", and it must lie between ",
                                                   -kMaxPriority, " and ", kMaxPriority, "."));
  }
  if (options.yield_ns_max == kNever) return absl::OkStatus();
  return CheckDuration("The longest wait for a higher priority (yield_ns_max)", options.name,
                       options.yield_ns_max);
}

// The rest of a job's ranges is the planner's to check (models/partition/task_set.h).
absl::Status CheckRealTime(const AppOptions& options) {
  const RealTimeOptions& job = options.real_time;
  const auto refuse = [&](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("App '", options.name, "' ", what...));
  };
  if (!job.IsPeriodic()) {
    if (job.period_ns == 0 && job.deadline_ns == 0 && job.worst_cases.empty() &&
        job.eviction_ns == 0 && job.neighbour_factor == 1) {
      return absl::OkStatus();
    }
    return refuse("states a deadline of ", job.deadline_ns, " ns, ", job.worst_cases.size(),
                  " worst cases, an eviction of ", job.eviction_ns,
                  " ns and a neighbour_factor of ", job.neighbour_factor, " with a period of ",
                  job.period_ns, " ns, and they need a period above 0.");
  }
  if (options.app_class == AppClass::kBestEffort) {
    return refuse("is a BE app with a period of ", job.period_ns,
                  " ns, and only an LC app has one.");
  }
  for (const auto& [what, value] :
       {std::pair{"The period", job.period_ns}, std::pair{"The deadline", job.deadline_ns},
        std::pair{"The eviction of a job", job.eviction_ns}}) {
    if (absl::Status status = CheckDuration(what, options.name, value); !status.ok()) return status;
  }
  if (options.Yields()) {
    return refuse("has a period and yields (yield_ns_max ", options.yield_ns_max,
                  "), and a job does not wait for other apps.");
  }
  if (job.deadline_ns > job.period_ns) {
    return refuse("has a deadline of ", job.deadline_ns, " ns, and it must be at most the period, ",
                  job.period_ns, " ns.");
  }
  if (options.promise.target_ns != job.Deadline()) {
    return refuse("has a target of ", options.promise.target_ns, " ns and a deadline of ",
                  job.Deadline(), " ns; the deadline of a periodic app is its target.");
  }
  return absl::OkStatus();
}

absl::Status CheckApp(const AppOptions& options) {
  if (absl::Status status = CheckName("app", options.name); !status.ok()) return status;
  // First: what is wrong with a deadline would be said of the target.
  if (absl::Status status = CheckRealTime(options); !status.ok()) return status;
  for (const auto& [what, value] : {std::pair{"The latency target", options.promise.target_ns},
                                    std::pair{"The p99 hint", options.promise.p99_alone_ns},
                                    std::pair{"The solo hint", options.solo_ns}}) {
    if (absl::Status status = CheckDuration(what, options.name, value); !status.ok()) return status;
  }
  if (absl::Status status = options.promise.CheckBounds(options.name); !status.ok()) return status;
  if (options.bounds_tokens && options.promise.HasTarget()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "App '", options.name, "' bounds the distances between tokens and has a target ", "of ",
        options.promise.target_ns, " ns, and it may have one of both."));
  }
  if (!std::isfinite(options.weight) || options.weight <= 0 || options.weight > 1e6) {
    return absl::InvalidArgumentError(absl::StrCat("The weight of app '", options.name, "' is ",
                                                   options.weight,
                                                   ", and it must be positive and at most 1e6."));
  }
  if (absl::Status status = CheckAmongLc(options); !status.ok()) return status;
  if (options.idle_timeout_ns < kMinIdleTimeoutNs) {
    return absl::InvalidArgumentError(
        absl::StrCat("The idle timeout of app '", options.name, "' is ", options.idle_timeout_ns,
                     " ns, and it must be at least ", kMinIdleTimeoutNs, " ns."));
  }
  if (options.tasks_max < 1 || options.tasks_max > kMaxTasksPerApp) {
    return absl::InvalidArgumentError(
        absl::StrCat("App '", options.name, "' asks for ", options.tasks_max,
                     " task slots, and it may have 1 to ", kMaxTasksPerApp, "."));
  }
  return absl::OkStatus();
}

// More task slots for a larger app on a reused slot. The old records stay: a stale ticket may still
// look at them.
void GrowTasks(App& app, PagedArray<Task> tasks, int32_t tasks_max) {
  for (int i = 0; i < app.task_slots_used; ++i) {
    const uint64_t word = app.TaskAt(static_cast<size_t>(i)).slot_word.load();
    app.first_generation = std::max(app.first_generation, GenerationOf(word) + 1);
  }
  app.task_slots_used.store(0);
  app.tasks.store(tasks.data(), std::memory_order_release);
  app.task_arrays.push_back(std::move(tasks));
  app.task_capacity.store(tasks_max, std::memory_order_release);
}

// Gives the app on a new or reused slot `tasks_max` free task slots, and its slots for large
// arguments. Allocates everything before it changes the app; slots take memory with their first
// task.
void MakeSlots(App& app, int32_t tasks_max) {
  auto free_tasks = std::make_unique<SlotStack>(static_cast<uint32_t>(tasks_max));
  auto free_large = std::make_unique<SlotStack>(uint32_t{kLargeArgumentSlotsPerApp});
  PagedArray<App::LargeArguments> large;
  if (app.large.empty()) {
    large = PagedArray<App::LargeArguments>(size_t{kLargeArgumentSlotsPerApp});
  }
  if (app.task_capacity < tasks_max) {
    // Powers of two: the arrays that stay have together at most as many slots as the last one.
    const auto capacity = std::bit_ceil(static_cast<uint32_t>(tasks_max));
    PagedArray<Task> tasks(capacity);
    app.task_arrays.reserve(app.task_arrays.size() + 1);
    GrowTasks(app, std::move(tasks), static_cast<int32_t>(capacity));
  }
  app.free_tasks = std::move(free_tasks);
  if (!large.empty()) app.large = std::move(large);
  app.free_large = std::move(free_large);
}

// Makes the slot usable with its first task. Only the thread that took it calls this.
void BeginSlot(App& app, Task& task, uint32_t index) {
  task.slot = index;
  task.app = &app;
  task.slot_word.store(FreeWord(app.first_generation), std::memory_order_relaxed);
  const auto needed = static_cast<int32_t>(index + 1);
  int32_t used = app.task_slots_used.load(std::memory_order_relaxed);
  while (used < needed && !app.task_slots_used.compare_exchange_weak(used, needed)) {
  }
}

bool IsOf(uint64_t word, TicketId ticket) {
  return GenerationOf(word) == UnpackSlot(ticket.value).generation;
}

// Takes the holders that `select` chooses off the word. Returns the word before; the word is
// unchanged when `select` chooses none.
template <class Select>
uint64_t Drop(Task& task, const Select& select) {
  uint64_t word = task.slot_word.load(std::memory_order_acquire);
  for (;;) {
    const uint64_t drop = select(word);
    if (drop == 0) return word;
    if (task.slot_word.compare_exchange_weak(word, WithoutHolders(word, drop),
                                             std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
      return word;
    }
  }
}

// Counts a thread inside the app, as a submit does: the app's slots stay until it has left.
class InsideApp {
 public:
  explicit InsideApp(App& app) : app_(app) { app_.submitters.fetch_add(1); }
  ~InsideApp() { app_.submitters.fetch_sub(1, std::memory_order_release); }
  InsideApp(const InsideApp&) = delete;
  InsideApp& operator=(const InsideApp&) = delete;

 private:
  App& app_;
};

bool HasPart(const FusedKernelDesc& fused, KernelId kernel) {
  return fused.tensor_part == kernel || fused.cuda_part == kernel;
}

// Nobody finds it by its parts any more. Its place stays.
void Drop(FusedKernelDesc& fused) { fused.tensor_part = fused.cuda_part = KernelId(); }

void AwaitInside(const App& app) {
  while (app.submitters.load() != 0) std::this_thread::yield();
}

// Clears what an earlier app on this slot left. The options are set.
void ResetApp(App& app) {
  app.queues.store(0);
  app.route.store(0);
  app.active_queries.store(0);
  app.queries_open.store(0);
  app.plan_index = App::kNoIndex;
  app.tasks_in_flight = 0;
  app.queries_waiting = 0;
  app.queries_idle = 0;
  app.must_yield = false;
  app.tasks_yielding = 0;
  app.regions_overdue = 0;
  app.held_ns.fill(0);
  app.reserved_capsms = 0;
  app.packed = false;
  app.fair_weight = 1;
  app.region_wish.Clear();
  app.uses.fill({});
  app.first_query = app.last_query = nullptr;
  app.on_device = LcOnDevice();
  app.depth_logged = -1;
  app.bound_lost_said = app.target_lost_said = false;
  app.real_time = RealTimeShare();
  app.region_place.store(kNoPlace);
  for (std::atomic<int64_t>* counter :
       {&app.submitted, &app.completed, &app.failed, &app.dropped, &app.cancelled, &app.rejected,
        &app.evictions, &app.device_ns, &app.work_ns, &app.block_tasks}) {
    counter->store(0);
  }
  app.latency.Clear();
}

}  // namespace

Tables::Tables() : queries_(size_t{kMaxExplicitQueries}), free_queries_(kMaxExplicitQueries) {}

absl::StatusOr<App*> Tables::CreateApp(const AppOptions& options) {
  if (absl::Status status = CheckApp(options); !status.ok()) return status;
  MutexLock lock(&mutex_);
  if (task_slots_ + options.tasks_max > kMaxTasks) {
    return absl::ResourceExhaustedError(
        absl::StrCat("App '", options.name, "' asks for ", options.tasks_max, " task slots, and ",
                     kMaxTasks - task_slots_, " of ", kMaxTasks, " are left."));
  }
  int slot = 0;
  const int count = app_count_.load(std::memory_order_relaxed);
  while (slot < count && apps_[static_cast<size_t>(slot)]->id.load() != 0) ++slot;
  if (slot == kMaxApps) {
    return absl::ResourceExhaustedError(
        absl::StrCat("App '", options.name, "' would be one more than ", kMaxApps, " apps."));
  }
  AppOptions own_options = options;
  std::unique_ptr<App> fresh = slot == count ? std::make_unique<App>() : nullptr;
  App& app = fresh != nullptr ? *fresh : *apps_[static_cast<size_t>(slot)];
  MakeSlots(app, options.tasks_max);
  // From here on nothing allocates.
  if (fresh != nullptr) apps_[static_cast<size_t>(slot)] = std::move(fresh);
  app.slot = static_cast<uint32_t>(slot);
  app.options = std::move(own_options);
  ResetApp(app);
  task_slots_ += options.tasks_max;
  ++app.generation;
  app.id.store(PackSmall(app.slot, app.generation));
  app.open.store(true);
  if (slot == count) app_count_.store(count + 1, std::memory_order_release);
  version_.fetch_add(1);
  return &app;
}

absl::Status Tables::UpdateApp(App& app, const AppUpdate& update) {
  AppOptions options = app.options;
  const bool lc = options.app_class == AppClass::kLatencyCritical;
  const bool of_lc = update.promise.StatesAny() || update.priority;
  if (lc ? update.weight.has_value() : of_lc) {
    return absl::InvalidArgumentError(absl::StrCat(
        "App '", options.name, "' is ", lc ? "latency-critical" : "best-effort", " and states ",
        lc ? "no weight." : "no target, bound, p99 alone or priority."));
  }
  options.promise = update.promise.Over(options.promise);
  options.weight = update.weight.value_or(options.weight);
  options.priority = update.priority.value_or(options.priority);
  if (absl::Status status = CheckApp(options); !status.ok()) return status;
  app.options.promise = options.promise;
  app.options.weight = options.weight;
  app.options.priority = options.priority;
  version_.fetch_add(1);
  return absl::OkStatus();
}

absl::Status Tables::CloseApp(App& app) {
  if (!app.open.exchange(false)) {
    return absl::InvalidArgumentError(
        absl::StrCat("App '", app.options.name, "' is released already."));
  }
  AwaitInside(app);
  return absl::OkStatus();
}

void Tables::FreeApp(App& app) {
  MutexLock lock(&mutex_);
  // A thread that drops a hold sees that the app is gone, or is awaited here.
  app.id.store(0);
  AwaitInside(app);
  for (int i = 0; i < queue_count_.load(); ++i) {
    Queue& queue = *queues_[static_cast<size_t>(i)];
    if (queue.id.load() != 0 && queue.app == &app) {
      queue.open.store(false);
      queue.id.store(0);
    }
  }
  for (int i = 0; i < app.task_slots_used; ++i) {
    // Tickets that the caller never released are stale from now on.
    Task& task = app.TaskAt(static_cast<size_t>(i));
    if (task.slot_word.load() == 0) continue;  // never begun
    task.slot_word.store(FreeWord(GenerationOf(task.slot_word.load()) + 1));
    task.state.store(TaskState::kFree);
  }
  task_slots_ -= app.options.tasks_max;
  version_.fetch_add(1);
}

absl::StatusOr<Queue*> Tables::CreateQueue(App& app) {
  MutexLock lock(&mutex_);
  int slot = 0;
  const int count = queue_count_.load(std::memory_order_relaxed);
  while (slot < count && queues_[static_cast<size_t>(slot)]->id.load() != 0) ++slot;
  if (slot == kMaxQueues) {
    return absl::ResourceExhaustedError(absl::StrCat("A queue for app '", app.options.name,
                                                     "' would be one more than ", kMaxQueues, "."));
  }
  if (slot == count) queues_[static_cast<size_t>(slot)] = std::make_unique<Queue>();
  Queue& queue = *queues_[static_cast<size_t>(slot)];
  queue.app = &app;
  app.queues.fetch_add(1);
  queue.head = queue.tail = nullptr;
  queue.ready_run = 0;
  queue.ready_last = nullptr;
  queue.backlog_index = -1;
  // in_plan_order stays: Flow::plan_order may have the queue until the next plan.
  queue.in_flight.store(0);
  queue.lane.store(kNoLane);
  queue.unlaunched.store(0);
  queue.regions_open.store(0);
  queue.tasks_open.store(0);
  ++queue.generation;
  queue.id.store(PackSmall(static_cast<uint32_t>(slot), queue.generation));
  queue.open.store(true);
  if (slot == count) queue_count_.store(count + 1, std::memory_order_release);
  return &queue;
}

absl::Status Tables::FreeQueue(Queue& queue) {
  MutexLock lock(&mutex_);
  queue.open.store(false);
  if (const int open = queue.tasks_open.load(); open != 0) {
    queue.open.store(true);
    return absl::FailedPreconditionError(
        absl::StrCat("The queue has ", open, " tasks or queries that are not complete."));
  }
  queue.id.store(0);
  queue.app->queues.fetch_sub(1);
  return absl::OkStatus();
}

// Between two Ticks no task that the flow holds ends, so what it says of its kernel holds still.
template <class Uses>
bool Tables::AnyHeld(const Uses& uses) const {
  for (int slot = 0; slot < app_slots(); ++slot) {
    const App& app = *apps_[static_cast<size_t>(slot)];
    for (int i = 0; i < app.task_slots_used; ++i) {
      const Task& task = app.TaskAt(static_cast<size_t>(i));
      const uint64_t word = task.slot_word.load(std::memory_order_acquire);
      if ((word & kHeldByFlow) != 0 && uses(task)) return true;
    }
  }
  return false;
}

bool Tables::IsUsed(const KernelDesc& kernel) const {
  if (!graph_use_[kernel.id.value - 1].IsIdle()) return true;
  for (int i = 0; i < kernels(); ++i) {
    const GraphCode* const graph = kernels_[static_cast<size_t>(i)]->graph();
    if (graph == nullptr || retired_.test(static_cast<size_t>(i))) continue;
    if (std::any_of(graph->pieces.begin(), graph->pieces.end(),
                    [&](const GraphPiece& piece) { return piece.kernel == kernel.id; })) {
      return true;
    }
  }
  for (int i = 0; i < fused_count(); ++i) {
    if (HasPart(fused(i), kernel.id) && !IsRetired(fused(i))) return true;
  }
  return AnyHeld([&kernel](const Task& task) { return task.work.kernel == &kernel; });
}

bool Tables::IsLaunched(const FusedKernelDesc& fused) const {
  return AnyHeld([&fused](const Task& task) {
    if (task.work.kernel == nullptr || !HasPart(fused, task.work.kernel->id)) return false;
    return std::any_of(task.progress.parts.begin(), task.progress.parts.end(),
                       [](const Part& part) { return part.form == Form::kFused; });
  });
}

int Tables::KernelSlotFor(const std::string& name, bool reuse) {
  const int count = kernel_count_.load(std::memory_order_relaxed);
  const auto is_free = [&](int slot) {
    return retired_.test(static_cast<size_t>(slot)) &&
           !IsUsed(*kernels_[static_cast<size_t>(slot)]);
  };
  for (int slot = 0; reuse && slot < count; ++slot) {
    if (kernels_[static_cast<size_t>(slot)]->name == name && is_free(slot)) return slot;
  }
  if (count < kMaxKernels) return count;
  for (int slot = 0; reuse && slot < count; ++slot) {
    if (is_free(slot)) return slot;
  }
  return kMaxKernels;
}

absl::StatusOr<KernelDesc*> Tables::StageKernel(KernelDesc desc, bool reuse) {
  if (absl::Status status = CheckKernel(desc); !status.ok()) return status;
  MutexLock lock(&mutex_);
  const int slot = KernelSlotFor(desc.name, reuse);
  if (slot == kMaxKernels) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Kernel '", desc.name, "' would be one more than ", kMaxKernels, "."));
  }
  desc.id = KernelId{static_cast<uint32_t>(slot + 1)};
  staged_ = std::make_unique<KernelDesc>(std::move(desc));
  return staged_.get();
}

const KernelDesc* Tables::StagedOver() const { return FindKernel(staged_->id); }

void Tables::PublishKernel() {
  MutexLock lock(&mutex_);
  assert(staged_ != nullptr && "no kernel is staged");
  const int count = kernel_count_.load(std::memory_order_relaxed);
  const size_t slot = staged_->id.value - 1;
  if (static_cast<int>(slot) == count) {
    kernels_[slot] = std::move(staged_);
    kernel_count_.store(count + 1, std::memory_order_release);
  } else {
    // In place: a pointer to the kernel that was there, which nobody uses, never dangles.
    for (int i = 0; i < fused_count(); ++i) {
      if (HasPart(fused(i), staged_->id)) Drop(*fused_[static_cast<size_t>(i)]);
    }
    *kernels_[slot] = std::move(*staged_);
    staged_.reset();
    graph_use_[slot].Reset();
    retired_.reset(slot);
  }
  version_.fetch_add(1);
}

void Tables::SetPieces(KernelId graph, std::vector<GraphPiece> pieces) {
  MutexLock lock(&mutex_);
  kernels_[graph.value - 1]->graph()->pieces = std::move(pieces);
}

void Tables::DropStagedKernel() {
  MutexLock lock(&mutex_);
  staged_.reset();
}

void Tables::RetireKernel(KernelId id) {
  MutexLock lock(&mutex_);
  retired_.set(id.value - 1);
}

bool Tables::IsRetired(KernelId id) const {
  MutexLock lock(&mutex_);
  return retired_.test(id.value - 1);
}

int Tables::KernelSlotsLeft() const {
  MutexLock lock(&mutex_);
  return kMaxKernels - kernels() + static_cast<int>(retired_.count());
}

bool Tables::HasItsParts(const FusedKernelDesc& fused) const {
  MutexLock lock(&mutex_);
  const auto is_there = [&](KernelId part) {
    return part && FindKernel(part) != nullptr && !retired_.test(part.value - 1);
  };
  // A place from which another kernel was dropped names no parts.
  return is_there(fused.tensor_part) && is_there(fused.cuda_part) && !IsRetired(fused);
}

absl::Status Tables::CheckFusedKernel(const FusedKernelDesc& desc) const {
  if (absl::Status status = CheckName("fused kernel", desc.name); !status.ok()) return status;
  if (FindKernel(desc.tensor_part) == nullptr || FindKernel(desc.cuda_part) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Fused kernel '", desc.name, "' names a part that is not registered."));
  }
  if (desc.tensor_blocks < 1 || desc.tensor_blocks > 32 || desc.cuda_blocks < 1 ||
      desc.cuda_blocks > 32) {
    return absl::InvalidArgumentError(absl::StrCat("Fused kernel '", desc.name, "' has the ratio ",
                                                   desc.tensor_blocks, ":", desc.cuda_blocks,
                                                   ", and each side has 1 to 32 blocks."));
  }
  for (const auto& [what, value, limit] :
       {std::tuple{"threads a block", desc.threads_per_block, kMaxThreadsPerBlock},
        std::tuple{"bytes of dynamic shared memory", desc.dynamic_shared_memory_bytes,
                   kMaxFusedSharedBytes},
        std::tuple{"fused blocks an SM", desc.blocks_per_sm, kMaxFusedBlocksPerSm}}) {
    if (value >= 0 && value <= limit) continue;
    return absl::InvalidArgumentError(absl::StrCat("Fused kernel '", desc.name, "' has ", value,
                                                   " ", what, ", and 0 to ", limit,
                                                   " are allowed."));
  }
  return absl::OkStatus();
}

absl::StatusOr<KernelId> Tables::TakeFusedPlace(const std::string& name, bool reuse) {
  MutexLock lock(&mutex_);
  const int count = fused_count();
  const auto find = [&](bool any_name) {
    int slot = 0;
    for (; slot < count; ++slot) {
      const FusedKernelDesc& kernel = fused(slot);
      if ((any_name || kernel.name == name) && IsRetired(kernel) && !IsLaunched(kernel)) break;
    }
    return slot;
  };
  int slot = reuse ? find(false) : count;
  if (slot == count && count == kMaxKernels && reuse) slot = find(true);
  if (slot == kMaxKernels) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Fused kernel '", name, "' would be one more than ", kMaxKernels, "."));
  }
  if (slot < count) Drop(*fused_[static_cast<size_t>(slot)]);
  return KernelId{static_cast<uint32_t>(slot + 1)};
}

absl::StatusOr<FusedKernelDesc*> Tables::AddFusedKernel(FusedKernelDesc desc) {
  if (absl::Status status = CheckFusedKernel(desc); !status.ok()) return status;
  if (!desc.id) {
    const absl::StatusOr<KernelId> id = TakeFusedPlace(desc.name);
    if (!id.ok()) return id.status();
    desc.id = *id;
  }
  MutexLock lock(&mutex_);
  const int count = fused_count();
  const size_t slot = desc.id.value - 1;
  if (static_cast<int>(slot) == count) {
    fused_[slot] = std::make_unique<FusedKernelDesc>(std::move(desc));
    fused_count_.store(count + 1, std::memory_order_release);
  } else {
    *fused_[slot] = std::move(desc);
    retired_fused_.reset(slot);
  }
  return fused_[slot].get();
}

void Tables::RetireFusedKernel(KernelId id) {
  MutexLock lock(&mutex_);
  retired_fused_.set(id.value - 1);
}

App* Tables::FindApp(AppId id) const {
  const uint32_t slot = SmallSlot(id.value);
  if (id.value == 0 || slot >= static_cast<uint32_t>(app_slots())) return nullptr;
  App* app = apps_[slot].get();
  return app->id.load(std::memory_order_acquire) == id.value ? app : nullptr;
}

Queue* Tables::FindQueue(QueueId id) const {
  const uint32_t slot = SmallSlot(id.value);
  if (id.value == 0 || slot >= static_cast<uint32_t>(queue_slots())) return nullptr;
  Queue* queue = queues_[slot].get();
  return queue->id.load(std::memory_order_acquire) == id.value ? queue : nullptr;
}

const KernelDesc* Tables::FindKernel(KernelId id) const {
  if (id.value == 0 ||
      id.value > static_cast<uint32_t>(kernel_count_.load(std::memory_order_acquire))) {
    return nullptr;
  }
  return kernels_[id.value - 1].get();
}

const FusedKernelDesc* Tables::FindFused(const KernelDesc& a, const KernelDesc& b,
                                         KernelId id) const {
  const int count = fused_count_.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    const FusedKernelDesc& fused = *fused_[static_cast<size_t>(i)];
    if (id && fused.id != id) continue;
    if ((fused.tensor_part == a.id && fused.cuda_part == b.id) ||
        (fused.tensor_part == b.id && fused.cuda_part == a.id)) {
      return &fused;
    }
  }
  return nullptr;
}

TicketId Tables::TicketOf(const Task& task) {
  return TicketId{PackSlot(
      {task.app->slot, task.slot, GenerationOf(task.slot_word.load(std::memory_order_relaxed))})};
}

Task* Tables::FindTask(TicketId ticket) const {
  if (ticket.value == 0 || ticket.value >> 60 != 0 || (ticket.value & 0xffff) == 0) return nullptr;
  const SlotAddress address = UnpackSlot(ticket.value);
  if (address.owner >= static_cast<uint32_t>(app_slots())) return nullptr;
  App& app = *apps_[address.owner];
  if (address.slot >= static_cast<uint32_t>(app.task_capacity.load(std::memory_order_acquire)))
    return nullptr;
  Task& task = app.TaskAt(address.slot);
  const uint64_t word = task.slot_word.load(std::memory_order_acquire);
  return GenerationOf(word) == address.generation && HoldersOf(word) != 0 ? &task : nullptr;
}

Task* Tables::FindTicket(TicketId ticket) const {
  Task* task = FindTask(ticket);
  if (task == nullptr) return nullptr;
  const uint64_t word = task->slot_word.load(std::memory_order_acquire);
  return IsOf(word, ticket) && IsTicketValid(word) ? task : nullptr;
}

bool Tables::IsSlotOf(const Task& task, TicketId ticket) {
  return IsOf(task.slot_word.load(std::memory_order_acquire), ticket);
}

Task* Tables::AllocateTask(App& app) {
  uint32_t slot = 0;
  if (!app.free_tasks->TryPop(slot)) return nullptr;
  Task& task = app.TaskAt(slot - 1);
  if (task.slot_word.load(std::memory_order_relaxed) == 0) BeginSlot(app, task, slot - 1);
  return &task;
}

App* Tables::AppOf(TicketId ticket) const {
  const SlotAddress address = UnpackSlot(ticket.value);
  if (ticket.value == 0 || address.owner >= static_cast<uint32_t>(app_slots())) return nullptr;
  return apps_[address.owner].get();
}

bool Tables::HoldForWaiter(TicketId ticket) {
  App* app = AppOf(ticket);
  if (app == nullptr) return false;
  const InsideApp inside(*app);
  Task* task = app->open.load() ? FindTask(ticket) : nullptr;
  if (task == nullptr) return false;
  uint64_t word = task->slot_word.load(std::memory_order_acquire);
  while (IsOf(word, ticket) && IsTicketValid(word)) {
    if (task->slot_word.compare_exchange_weak(word, word + kHeldByWaiter, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void Tables::DropWaiter(TicketId ticket) {
  const InsideApp inside(*AppOf(ticket));
  Task& task = *FindTask(ticket);  // the hold keeps it
  const uint64_t before = Drop(task, [](uint64_t) { return kHeldByWaiter; });
  if (HoldersOf(before) == kHeldByWaiter) FreeSlot(task);
}

bool Tables::ReleaseTicket(TicketId ticket) {
  App* app = AppOf(ticket);
  if (app == nullptr) return false;
  const InsideApp inside(*app);
  Task* task = app->id.load() != 0 ? FindTask(ticket) : nullptr;
  if (task == nullptr) return false;
  const uint64_t before = Drop(
      *task, [ticket](uint64_t word) { return IsOf(word, ticket) ? word & kHeldByCaller : 0; });
  if (!IsOf(before, ticket) || (before & kHeldByCaller) == 0) return false;
  if (HoldersOf(before) == kHeldByCaller) FreeSlot(*task);
  return true;
}

void Tables::DropFinished(Task& task) {
  constexpr uint64_t kFlow = kHeldByFlow | kDetached;
  const uint64_t before = Drop(task, [](uint64_t word) { return word & kFlow; });
  if ((HoldersOf(before) & ~kFlow) == 0) FreeSlot(task);
}

int32_t Tables::RegionsOpen(const App& app) const {
  int32_t regions = 0;
  for (int i = 0; i < queue_slots(); ++i) {
    const Queue& queue = *queues_[static_cast<size_t>(i)];
    if (queue.app == &app && queue.id.load() != 0) regions += queue.regions_open.load();
  }
  return regions;
}

int Tables::SlotsAwaited(const App& app) const {
  int slots = 0;
  for (int i = 0; i < app.task_slots_used; ++i) {
    slots += WaitersOf(app.TaskAt(static_cast<size_t>(i)).slot_word.load()) > 0 ? 1 : 0;
  }
  return slots;
}

// The last holder is gone: the slot goes back to its app.
void Tables::FreeSlot(Task& task) {
  if (task.large_arguments >= 0) {
    task.app->free_large->Push(static_cast<uint32_t>(task.large_arguments + 1));
    task.large_arguments = -1;
  }
  task.state.store(TaskState::kFree, std::memory_order_relaxed);
  task.app->free_tasks->Push(task.slot + 1);
}

absl::StatusOr<QueryId> Tables::AllocateQuery(Queue& queue, TimeNs arrival_ns, double input_size) {
  QuerySlot* const slot = TryAllocateQuery(queue, arrival_ns, input_size);
  if (slot == nullptr) {
    const App& app = *queue.app;
    return absl::ResourceExhaustedError(
        absl::StrCat("App '", app.options.name, "' has ", app.queries_open.load(),
                     " queries that are begun and not done, and it may have ",
                     app.options.tasks_max, ", as many as it has task slots."));
  }
  slot->open.store(true, std::memory_order_release);
  return slot->state.id;
}

QuerySlot* Tables::TryAllocateQuery(Queue& queue, TimeNs arrival_ns, double input_size) {
  App& app = *queue.app;
  uint32_t index = 0;
  if (app.queries_open.fetch_add(1) >= app.options.tasks_max || !free_queries_.TryPop(index)) {
    app.queries_open.fetch_sub(1);
    return nullptr;
  }
  QuerySlot& slot = queries_[index - 1];
  const auto used = static_cast<int32_t>(index);
  int32_t most = query_slots_used_.load(std::memory_order_relaxed);
  while (most < used && !query_slots_used_.compare_exchange_weak(most, used)) {
  }
  const uint64_t generation = slot.generation.fetch_add(1) + 1;
  slot.queue = &queue;
  queue.tasks_open.fetch_add(1);
  slot.tasks_submitted.store(0);
  slot.state = QueryState();
  slot.state.id = QueryId{PackSlot({0, index - 1, generation})};
  slot.state.app = queue.app;
  slot.state.queue = &queue;
  slot.state.slot = &slot;
  slot.state.arrival_ns = arrival_ns;
  slot.state.input_size = input_size;
  return &slot;
}

QuerySlot* Tables::FindQuery(QueryId id) const {
  if (id.value == 0 || id.value >> 60 != 0 || (id.value & 0xffff) == 0) return nullptr;
  const SlotAddress address = UnpackSlot(id.value);
  if (address.slot >= kMaxExplicitQueries) return nullptr;
  QuerySlot& slot = queries_[address.slot];
  return (slot.generation.load(std::memory_order_acquire) & kGenerationMask) == address.generation
             ? &slot
             : nullptr;
}

void Tables::FreeQuery(QuerySlot& slot) {
  const uint32_t index = UnpackSlot(slot.state.id.value).slot;
  slot.queue->tasks_open.fetch_sub(1);
  slot.queue->app->queries_open.fetch_sub(1);
  slot.generation.fetch_add(1, std::memory_order_acq_rel);
  free_queries_.Push(index + 1);
}

}  // namespace gpushare::core
