#include "tools/gpushare/app_driver.h"

#include <algorithm>
#include <cmath>

#include "tools/gpushare/errors.h"

namespace gpushare::tool {

namespace {

// Fields of one task that its work decides.
gpushare_task_options TaskOptions(const WorkItem& item, gpushare_kernel* kernel) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  options.detached = 1;
  if (item.is_copy()) {
    options.kind = GPUSHARE_TASK_MEMCPY;
    options.copy_size_bytes = item.bytes;
    options.copy_direction = item.direction == CopyDirection::kHostToDevice
                                 ? GPUSHARE_COPY_HOST_TO_DEVICE
                                 : GPUSHARE_COPY_DEVICE_TO_HOST;
    options.copy_pageable = item.pinned ? 0 : 1;
  } else {
    options.kernel = kernel;
    options.block_tasks = item.block_tasks;
  }
  return options;
}

std::vector<gpushare_kernel*> KernelsOf(const std::vector<WorkItem>& items, KernelTable& table) {
  std::vector<gpushare_kernel*> kernels;
  for (const WorkItem& item : items) {
    kernels.push_back(item.is_copy() ? nullptr : table.Get(item.kernel));
  }
  return kernels;
}

AppHandle CreateApp(gpushare_runtime* runtime, const gpushare_app_options& options) {
  gpushare_app* app = nullptr;
  Check(gpushare_app_create(runtime, &options, &app));
  return AppHandle(app);
}

QueueHandle CreateQueue(gpushare_app* app) {
  gpushare_queue* queue = nullptr;
  Check(gpushare_queue_create(app, &queue));
  return QueueHandle(queue);
}

void ReserveCapSms(gpushare_app* app, int capsms, bool packed) {
  if (capsms == 0) return;
  gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
  options.capsms = capsms;
  options.packed = packed ? 1 : 0;
  Check(gpushare_reserve_capsm(app, &options));
}

std::string VerdictSentence(const std::string& app, const gpushare_completion_record& record) {
  return "A task of app '" + app + "' ends with the verdict '" +
         gpushare_verdict_name(record.verdict) + "' (code " + std::to_string(record.error_code) +
         ") instead of 'ok'.";
}

}  // namespace

gpushare_kernel* KernelTable::Get(const std::string& name) {
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return found->second.get();
  // The record comes from the profile; asking first gives an unknown name its clear error.
  gpushare_kernel_info info = GPUSHARE_KERNEL_INFO_INIT;
  Check(gpushare_kernel_info_by_name(runtime_, name.c_str(), &info));
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.kind = info.kind;
  options.name = name.c_str();
  gpushare_kernel* kernel = nullptr;
  Check(gpushare_kernel_register(runtime_, &options, &kernel));
  kernels_.emplace(name, KernelHandle(kernel));
  return kernel;
}

std::vector<NamedId> KernelTable::Names() const {
  std::vector<NamedId> names;
  for (const auto& [name, kernel] : kernels_) {
    names.push_back({gpushare_kernel_id(kernel.get()), name, false});
  }
  return names;
}

// --- LC ------------------------------------------------------------------------------------------

LcDriver::LcDriver(gpushare_runtime* runtime, const LcPlan& plan, KernelTable& kernels,
                   int tasks_max, RunFault& fault)
    : plan_(plan), fault_(fault), runtime_(runtime), think_random_(plan.think_seed) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  options.name = plan.app->name.c_str();
  options.target_ns = plan.target_ns;
  options.p99_bound = plan.p99_bound;
  options.p99_alone_ns = plan.p99_alone_ns;
  options.solo_ns = plan.solo_ns;
  options.tasks_max = tasks_max;
  app_ = CreateApp(runtime, options);
  if (plan.reserve) ReserveCapSms(app_.get(), plan.app->reserve_capsms, plan.app->packed);
  queue_ = CreateQueue(app_.get());
  kernels_ = KernelsOf(plan.app->tasks, kernels);
}

NamedId LcDriver::Id() const { return {gpushare_app_id(app_.get()), plan_.app->name, true}; }

int64_t LcDriver::DrawThinkNs() {
  const ArrivalSpec& spec = plan_.app->arrivals;
  if (!spec.random_think) return spec.think_ns;
  return std::llround(static_cast<double>(spec.think_ns) * think_random_.Exponential());
}

void LcDriver::Start(int64_t start_ns) {
  start_ns_ = start_ns;
  if (!ClosedLoop()) return;
  for (int32_t client = 0; client < plan_.app->arrivals.clients; ++client) {
    due_clients_.emplace(start_ns, client);
    next_think_ns_.push_back(DrawThinkNs());
  }
}

int64_t LcDriver::NextArrivalNs() const {
  if (stopped_) return GPUSHARE_NEVER;
  if (!ClosedLoop()) {
    return next_arrival_ < plan_.arrivals_ns.size() ? start_ns_ + plan_.arrivals_ns[next_arrival_]
                                                    : GPUSHARE_NEVER;
  }
  if (Started() >= plan_.closed_queries || due_clients_.empty()) return GPUSHARE_NEVER;
  return due_clients_.begin()->first;
}

int64_t LcDriver::StepNs() const {
  if (!ClosedLoop() || next_think_ns_.empty()) return GPUSHARE_NEVER;
  // A client that is answered now asks again after its think time at the earliest; without one it
  // is served by the completion itself. One microsecond at least, so that a tiny draw does not make
  // the run crawl.
  constexpr int64_t kStepMinNs = 1000;
  int64_t step_ns = GPUSHARE_NEVER;
  for (const int64_t think_ns : next_think_ns_) {
    if (think_ns > 0) step_ns = std::min(step_ns, std::max(kStepMinNs, think_ns));
  }
  return step_ns;
}

bool LcDriver::Exhausted() const {
  if (first_unsubmitted_ < queries_.size()) return false;
  if (stopped_) return true;
  if (ClosedLoop()) return Started() >= plan_.closed_queries;
  return next_arrival_ == plan_.arrivals_ns.size();
}

bool LcDriver::Done() const { return Exhausted() && completed_queries_ == Started(); }

void LcDriver::SubmitDue(int64_t now_ns) {
  while (NextArrivalNs() <= now_ns) {
    const int64_t arrival_ns = NextArrivalNs();
    int32_t client = -1;
    if (ClosedLoop()) {
      client = due_clients_.begin()->second;
      due_clients_.erase(due_clients_.begin());
    } else {
      ++next_arrival_;
    }
    Enqueue(arrival_ns, client);
  }
  Pump();
}

void LcDriver::Enqueue(int64_t arrival_ns, int32_t client) {
  Query query;
  query.driver = this;
  query.arrival_ns = arrival_ns;
  query.client = client;
  query.index = Started();
  queries_.push_back(query);
  latencies_ns_.push_back(-1);
  last_arrival_ns_ = std::max(last_arrival_ns_, arrival_ns);
}

// Submits in order of arrival until the library's bounded queue is full; completions go on from
// there. Waiting in front of a full queue counts as latency, since arrivals are the intended ones.
void LcDriver::Pump() {
  if (pumping_) return;  // a submit may complete a task at once and call back
  pumping_ = true;
  while (first_unsubmitted_ < queries_.size() && !fault_.any()) {
    Query& query = queries_[first_unsubmitted_];
    if (!SubmitNextTask(query)) break;
    if (query.submitted < static_cast<int32_t>(plan_.app->tasks.size())) continue;
    if (query.handle.value != 0 && gpushare_query_end(runtime_, query.handle) != GPUSHARE_OK) {
      fault_.Set(gpushare_last_error_message());
    }
    ++first_unsubmitted_;
  }
  pumping_ = false;
}

bool LcDriver::SubmitNextTask(Query& query) {
  const std::vector<WorkItem>& items = plan_.app->tasks;
  const auto task = static_cast<size_t>(query.submitted);
  gpushare_status status = GPUSHARE_OK;
  if (items.size() > 1 && task == 0 && query.handle.value == 0) {
    status = gpushare_query_begin(queue_.get(), query.arrival_ns, &query.handle);
  }
  if (status == GPUSHARE_OK) {
    gpushare_task_options options = TaskOptions(items[task], kernels_[task]);
    if (items.size() > 1) {
      options.query = query.handle;
    } else {
      options.arrival_ns = query.arrival_ns;
    }
    options.callback = &LcDriver::OnComplete;
    options.callback_user = &query;
    ++query.submitted;  // before the call: it may call back
    ++count_.accepted;
    status = gpushare_submit_lc(queue_.get(), &options, nullptr);
    if (status == GPUSHARE_OK) return true;
    --query.submitted;
    --count_.accepted;
  }
  if (status != GPUSHARE_RESOURCE_EXHAUSTED) fault_.Set(gpushare_last_error_message());
  return false;
}

void LcDriver::OnComplete(void* user, const gpushare_completion_record* record) {
  auto* query = static_cast<Query*>(user);
  query->driver->Complete(*query, *record);
}

void LcDriver::Complete(Query& query, const gpushare_completion_record& record) {
  ++count_.completed;
  if (record.verdict != GPUSHARE_VERDICT_OK) fault_.Set(VerdictSentence(plan_.app->name, record));
  if (++query.completed == static_cast<int32_t>(plan_.app->tasks.size())) {
    latencies_ns_[static_cast<size_t>(query.index)] = record.complete_ns - query.arrival_ns;
    ++completed_queries_;
    if (query.client >= 0) {
      int64_t& think_ns = next_think_ns_[static_cast<size_t>(query.client)];
      due_clients_.emplace(record.complete_ns + think_ns, query.client);
      think_ns = DrawThinkNs();
    }
  }
  if (ClosedLoop()) {
    SubmitDue(record.complete_ns);  // a client without think time asks again at once
  } else {
    Pump();
  }
}

// --- BE ------------------------------------------------------------------------------------------

BeDriver::BeDriver(gpushare_runtime* runtime, const BePlan& plan, KernelTable& kernels,
                   RunFault& fault)
    : plan_(plan), fault_(fault) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  options.name = plan.app->name.c_str();
  options.weight = plan.app->weight;
  // Twice what is pending: a slot may be free only after its callback has returned.
  options.tasks_max = 2 * plan.app->queues * plan.app->depth + 16;
  app_ = CreateApp(runtime, options);
  if (plan.quota) ReserveCapSms(app_.get(), plan.app->quota_capsms, plan.app->packed);
  for (int i = 0; i < plan.app->queues; ++i) queues_.push_back(CreateQueue(app_.get()));
  kernels_ = KernelsOf(plan.app->tasks, kernels);
  next_item_.assign(queues_.size(), 0);
}

NamedId BeDriver::Id() const { return {gpushare_app_id(app_.get()), plan_.app->name, false}; }

void BeDriver::Start(int64_t start_ns) {
  start_ns_ = start_ns;
  // Round by round, so that every queue has a head before any has a second task.
  for (int round = 0; round < plan_.app->depth; ++round) {
    for (size_t queue = 0; queue < queues_.size(); ++queue) {
      slots_.push_back({this, queue, 0});
      Submit(slots_.back());
    }
  }
}

void BeDriver::Stop(int64_t end_ns) {
  stopped_ = true;
  end_ns_ = end_ns;
}

void BeDriver::Submit(Slot& slot) {
  size_t& next = next_item_[slot.queue];
  slot.item = next;
  next = (next + 1) % plan_.app->tasks.size();
  gpushare_task_options options = TaskOptions(plan_.app->tasks[slot.item], kernels_[slot.item]);
  options.callback = &BeDriver::OnComplete;
  options.callback_user = &slot;
  ++count_.accepted;
  if (gpushare_submit_be(queues_[slot.queue].get(), &options, nullptr) != GPUSHARE_OK) {
    --count_.accepted;
    fault_.Set(gpushare_last_error_message());
  }
}

void BeDriver::OnComplete(void* user, const gpushare_completion_record* record) {
  auto* slot = static_cast<Slot*>(user);
  slot->driver->Complete(*slot, *record);
}

void BeDriver::Complete(Slot& slot, const gpushare_completion_record& record) {
  ++count_.completed;
  evictions_ += record.evictions;
  // Once the run is over, what a policy still holds is shut down.
  const bool shut_down = stopped_ && record.verdict == GPUSHARE_VERDICT_SHUTDOWN;
  if (shut_down) ++shut_down_;
  if (record.verdict != GPUSHARE_VERDICT_OK && !shut_down) {
    fault_.Set(VerdictSentence(plan_.app->name, record));
  }
  if (shut_down && record.launch_ns == 0) return;  // it never ran
  // Devices without timestamps tell no start: then the launch call stands for it.
  const int64_t from_ns = record.start_ns > 0 ? record.start_ns : record.launch_ns;
  const int64_t to_ns = record.end_ns > 0 ? record.end_ns : record.complete_ns;
  spans_.push_back({from_ns, to_ns, plan_.app->tasks[slot.item].work()});
  if (!stopped_ && !fault_.any()) Submit(slot);
}

BeWork BeDriver::Work() const {
  BeWork work;
  work.tasks = count_.completed - shut_down_;
  work.evictions = evictions_;
  double done = 0;
  for (const Span& span : spans_) {
    done += span.work * OverlapShare(span.from_ns, span.to_ns, start_ns_, end_ns_);
  }
  const double seconds = static_cast<double>(end_ns_ - start_ns_) * 1e-9;
  work.work_per_second = seconds > 0 ? done / seconds : 0;
  return work;
}

}  // namespace gpushare::tool
