#include "tools/gpushare/run/app_driver.h"

#include <algorithm>

#include "tools/gpushare/run/apps.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {

namespace {

std::vector<QueueHandle> CreateQueues(gpushare_app* app, int count) {
  std::vector<QueueHandle> queues;
  for (int i = 0; i < count; ++i) {
    gpushare_queue* queue = nullptr;
    Check(gpushare_queue_create(app, &queue));
    queues.emplace_back(queue);
  }
  return queues;
}

gpushare_app_guarantee GuaranteeOf(gpushare_app* app) {
  gpushare_app_guarantee guarantee = GPUSHARE_APP_GUARANTEE_INIT;
  Check(gpushare_app_guarantee_get(app, &guarantee));
  return guarantee;
}

std::string VerdictSentence(const std::string& app, const gpushare_completion_record& record) {
  return "A task of app '" + app + "' ends with the verdict '" +
         gpushare_verdict_name(record.verdict) + "' (code " + std::to_string(record.error_code) +
         ") instead of 'ok'.";
}

}  // namespace

void RunFault::Set(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!message_.empty()) return;
  message_ = text.empty() ? "The library refuses a call and does not say why." : text;
  any_.store(true, std::memory_order_release);
}

std::string RunFault::message() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return message_;
}

// --- LC ------------------------------------------------------------------------------------------

LcDriver::LcDriver(gpushare_runtime* runtime, const LcPlan& plan, AppHandle app,
                   KernelTable& kernels, bool threaded, RunFault& fault)
    : plan_(plan),
      threaded_(threaded),
      fault_(fault),
      runtime_(runtime),
      app_(std::move(app)),
      queues_(CreateQueues(app_.get(), plan.app->queues)),
      tasks_(BindTasks(plan.app->name, plan.app->tasks, kernels)),
      think_times_(plan) {}

gpushare_app_guarantee LcDriver::Guarantee() const { return GuaranteeOf(app_.get()); }

NamedId LcDriver::Id() const { return {gpushare_app_id(app_.get()), plan_.app->name, true}; }

void LcDriver::WarmUp(int64_t now_ns) {
  ++warm_ups_;
  Enqueue(now_ns, -1, false);
  Pump();
}

void LcDriver::Start(int64_t start_ns) {
  start_ns_ = start_ns;
  if (!ClosedLoop() || InRounds(plan_)) return;
  for (int32_t client = 0; client < plan_.app->arrivals.clients; ++client) {
    due_clients_.emplace(start_ns, client);
    next_think_.push_back(think_times_.Draw());
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
  if (!ClosedLoop() || next_think_.empty()) return GPUSHARE_NEVER;
  // A client that gets its answer now sends its next query after its think time at the earliest.
  // Without think time the completion callback sends it. At least one microsecond, so that a tiny
  // think time does not slow the run down.
  constexpr int64_t kStepMinNs = 1000;
  int64_t step_ns = GPUSHARE_NEVER;
  for (const Think& think : next_think_) {
    if (think.time_ns > 0) step_ns = std::min(step_ns, std::max(kStepMinNs, think.time_ns));
  }
  return step_ns;
}

bool LcDriver::Exhausted() const {
  if (first_unsubmitted_ < queries_.size()) return false;
  if (stopped_) return true;
  if (ClosedLoop()) return Started() >= plan_.closed_queries;
  return next_arrival_ == plan_.arrivals_ns.size();
}

bool LcDriver::Idle() const {
  return completed_queries_.load(std::memory_order_acquire) ==
         static_cast<int64_t>(queries_.size());
}

bool LcDriver::Done() const { return Exhausted() && Idle(); }

std::vector<int64_t> LcDriver::LatenciesNs() const {
  std::vector<int64_t> latencies;
  latencies.reserve(queries_.size());
  for (const Query& query : queries_) {
    if (query.counted) latencies.push_back(query.latency_ns);
  }
  return latencies;
}

void LcDriver::Ask(int64_t arrival_ns) {
  Enqueue(arrival_ns, -1, true);
  Pump();
}

void LcDriver::SubmitDue(int64_t now_ns) {
  TakeAnswers();
  while (NextArrivalNs() <= now_ns) {
    const int64_t arrival_ns = NextArrivalNs();
    int32_t client = -1;
    if (ClosedLoop()) {
      client = due_clients_.begin()->second;
      due_clients_.erase(due_clients_.begin());
    } else {
      ++next_arrival_;
    }
    Enqueue(arrival_ns, client, true);
  }
  Pump();
}

void LcDriver::Enqueue(int64_t arrival_ns, int32_t client, bool counted) {
  const int passes = counted ? plan_.app->swap.PassesOf(Started()) : 1;
  const size_t queue = queries_.size() % queues_.size();
  Query& query = queries_.emplace_back();
  query.driver = this;
  query.tasks = passes * static_cast<int32_t>(tasks_.size());
  query.queue = queue;
  query.arrival_ns = arrival_ns;
  query.client = client;
  if (client >= 0) query.next_within_ns = next_think_[static_cast<size_t>(client)].next_within_ns;
  query.counted = counted;
}

// Submits in order of arrival until the library's bounded queue is full. Completions continue from
// there, or in thread mode the load thread's next call. The wait for a full queue counts as
// latency, because latencies start at the intended arrivals.
void LcDriver::Pump() {
  if (pumping_) return;  // a submit may complete a task at once and call this again
  pumping_ = true;
  while (first_unsubmitted_ < queries_.size() && !fault_.any()) {
    Query& query = queries_[first_unsubmitted_];
    if (!SubmitNextTask(query)) break;
    if (query.submitted < query.tasks) continue;
    if (query.handle.value != 0 && gpushare_query_end(runtime_, query.handle) != GPUSHARE_OK) {
      fault_.Set(gpushare_last_error_message());
    }
    ++first_unsubmitted_;
  }
  pumping_ = false;
}

bool LcDriver::SubmitNextTask(Query& query) {
  gpushare_queue* queue = queues_[query.queue].get();
  gpushare_status status = GPUSHARE_OK;
  if (query.tasks > 1 && query.submitted == 0 && query.handle.value == 0) {
    status = gpushare_query_begin(queue, query.arrival_ns, &query.handle);
  }
  if (status == GPUSHARE_OK) {
    gpushare_task_options options = tasks_[static_cast<size_t>(query.submitted) % tasks_.size()];
    if (query.tasks > 1) {
      options.query = query.handle;
    } else {
      options.arrival_ns = query.arrival_ns;
    }
    if (query.submitted + 1 == query.tasks) options.next_within_ns = query.next_within_ns;
    options.callback = &LcDriver::OnComplete;
    options.callback_user = &query;
    ++query.submitted;  // before the submit, whose callback may run inside it
    count_.accepted.fetch_add(1, std::memory_order_relaxed);
    status = gpushare_submit_lc(queue, &options, nullptr);
    if (status == GPUSHARE_OK) return true;
    --query.submitted;
    count_.accepted.fetch_sub(1, std::memory_order_relaxed);
  }
  if (status != GPUSHARE_RESOURCE_EXHAUSTED) fault_.Set(gpushare_last_error_message());
  return false;
}

void LcDriver::OnComplete(void* user, const gpushare_completion_record* record) {
  auto* query = static_cast<Query*>(user);
  query->driver->Complete(*query, *record);
}

void LcDriver::Complete(Query& query, const gpushare_completion_record& record) {
  count_.completed.fetch_add(1, std::memory_order_relaxed);
  if (record.verdict != GPUSHARE_VERDICT_OK) fault_.Set(VerdictSentence(plan_.app->name, record));
  const int32_t completed = query.completed.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (completed == query.tasks) {
    query.latency_ns = record.complete_ns - query.arrival_ns;
    if (query.client >= 0) Answer(query.client, record.complete_ns);
    completed_queries_.fetch_add(1, std::memory_order_release);
  }
  if (threaded_) return;  // the load thread submits
  if (ClosedLoop()) {
    SubmitDue(record.complete_ns);  // a client without think time sends its next query at once
  } else {
    Pump();
  }
}

void LcDriver::Answer(int32_t client, int64_t complete_ns) {
  if (threaded_) {
    const std::lock_guard<std::mutex> lock(answers_mutex_);
    answers_.emplace_back(client, complete_ns);
    answered_.store(true, std::memory_order_release);
    return;
  }
  AskAgain(client, complete_ns);
}

void LcDriver::AskAgain(int32_t client, int64_t complete_ns) {
  Think& think = next_think_[static_cast<size_t>(client)];
  due_clients_.emplace(complete_ns + think.time_ns, client);
  think = think_times_.Draw();
}

void LcDriver::TakeAnswers() {
  if (!answered_.load(std::memory_order_acquire)) return;
  const std::lock_guard<std::mutex> lock(answers_mutex_);
  answered_.store(false, std::memory_order_relaxed);
  for (const auto& [client, complete_ns] : answers_) AskAgain(client, complete_ns);
  answers_.clear();
}

// --- BE ------------------------------------------------------------------------------------------

BeDriver::BeDriver(gpushare_runtime* runtime, const BePlan& plan, KernelTable& kernels,
                   RunFault& fault)
    : plan_(plan),
      fault_(fault),
      app_(CreateBeApp(runtime, plan)),
      queues_(CreateQueues(app_.get(), plan.app->queues)) {
  tasks_ = BindTasks(plan.app->name, plan.app->tasks, kernels);
  next_item_ = std::make_unique<std::atomic<size_t>[]>(queues_.size());
}

gpushare_app_guarantee BeDriver::Guarantee() const { return GuaranteeOf(app_.get()); }

NamedId BeDriver::Id() const { return {gpushare_app_id(app_.get()), plan_.app->name, false}; }

void BeDriver::Start() {
  // One task of each queue after the other, so that every queue gets its first before any gets a
  // second.
  for (int round = 0; round < plan_.app->depth; ++round) {
    for (size_t queue = 0; queue < queues_.size(); ++queue) {
      slots_.push_back({this, queue, 0});
      Submit(slots_.back());
    }
  }
}

void BeDriver::StartRound(int64_t now_ns) {
  in_rounds_ = true;
  round_start_ns_ = now_ns;
  const auto queues = queues_.size();
  round_left_.store(queues * static_cast<size_t>(plan_.app->depth), std::memory_order_release);
  if (slots_.empty()) return Start();
  for (Slot& slot : slots_) Submit(slot);
}

void BeDriver::Stop(int64_t end_ns) {
  // What is left of a round that does not end was held all along.
  const std::lock_guard<std::mutex> lock(records_mutex_);
  if (in_rounds_ && !RoundEnded()) {
    rounds_ns_ += end_ns - std::max(round_start_ns_, start_ns_);
  }
  end_ns_ = end_ns;
  stopped_.store(true, std::memory_order_release);
}

void BeDriver::Submit(Slot& slot) {
  slot.item = next_item_[slot.queue].fetch_add(1, std::memory_order_relaxed) % tasks_.size();
  gpushare_task_options options = tasks_[slot.item];
  options.callback = &BeDriver::OnComplete;
  options.callback_user = &slot;
  count_.accepted.fetch_add(1, std::memory_order_relaxed);
  const gpushare_status status = gpushare_submit_be(queues_[slot.queue].get(), &options, nullptr);
  if (status == GPUSHARE_OK) return;
  count_.accepted.fetch_sub(1, std::memory_order_relaxed);
  // A late callback may have seen the run going on, although the runtime is shut down by now.
  const bool late = status == GPUSHARE_FAILED_PRECONDITION && stopped_.load();
  if (!late) fault_.Set(gpushare_last_error_message());
}

void BeDriver::OnComplete(void* user, const gpushare_completion_record* record) {
  auto* slot = static_cast<Slot*>(user);
  slot->driver->Complete(*slot, *record);
}

void BeDriver::Complete(Slot& slot, const gpushare_completion_record& record) {
  count_.completed.fetch_add(1, std::memory_order_relaxed);
  Record(slot, record);
  if (in_rounds_) {
    EndOfRoundTask(record.complete_ns);
  } else if (!stopped_.load(std::memory_order_acquire) && !fault_.any()) {
    Submit(slot);
  }
}

void BeDriver::EndOfRoundTask(int64_t complete_ns) {
  const std::lock_guard<std::mutex> lock(records_mutex_);
  const bool last = round_left_.load(std::memory_order_relaxed) == 1;
  // Stop has counted the time of a round that was open then.
  if (last && !stopped_.load() && round_start_ns_ >= start_ns_) {
    rounds_ns_ += complete_ns - round_start_ns_;
  }
  round_left_.fetch_sub(1, std::memory_order_release);
}

void BeDriver::Record(const Slot& slot, const gpushare_completion_record& record) {
  const std::lock_guard<std::mutex> lock(records_mutex_);
  evictions_ += record.evictions;
  // At the end of the run the shutdown completes the tasks that a policy still holds.
  const bool shut_down = stopped_.load() && record.verdict == GPUSHARE_VERDICT_SHUTDOWN;
  if (shut_down) ++shut_down_;
  if (record.verdict != GPUSHARE_VERDICT_OK && !shut_down) {
    fault_.Set(VerdictSentence(plan_.app->name, record));
  }
  if (shut_down && record.launch_ns == 0) return;  // it never ran
  // Devices without timestamps report no start: use the launch call instead.
  const int64_t from_ns = record.start_ns > 0 ? record.start_ns : record.launch_ns;
  const int64_t to_ns = record.end_ns > 0 ? record.end_ns : record.complete_ns;
  spans_.push_back({from_ns, to_ns, plan_.app->tasks[slot.item].work()});
}

BeWork BeDriver::Work() const {
  const std::lock_guard<std::mutex> lock(records_mutex_);
  BeWork work = {.tasks = count_.completed.load() - shut_down_, .evictions = evictions_};
  double done = 0;
  for (const Span& span : spans_) {
    done += span.work * OverlapShare(span.from_ns, span.to_ns, start_ns_, end_ns_);
  }
  const int64_t span_ns = in_rounds_ ? rounds_ns_ : end_ns_ - start_ns_;
  const double seconds = static_cast<double>(span_ns) * 1e-9;
  work.work_per_second = seconds > 0 ? done / seconds : 0;
  return work;
}

}  // namespace gpushare::tool
