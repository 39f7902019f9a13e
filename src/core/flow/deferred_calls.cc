// The application's functions that a Tick leaves to run. See deferred_calls.h.

#include "src/core/flow/deferred_calls.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/application_call.h"
#include "src/core/base/exhaustion.h"
#include "src/core/flow/verbs/guarded_enqueue.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/seams/native_code.h"

namespace gpushare::core {

// Without memory for the sentence: "".
std::string RunCallback(CompletionCallback callback, void* user, const CompletionRecord& record) {
  const std::string thrown = ThrownBy([&] { callback(user, record); });
  if (thrown.empty()) return {};
  return TextOf([&] {
    return absl::StrCat("The completion callback of ticket ", record.ticket.value, " threw ",
                        thrown, ".");
  });
}

void DeferredCalls::Take() {
  launches_ = flow_.deferred.size();
  notices_ = flow_.notices.size();
  const bool calls = !flow_.reports.empty() || launches_ > 0 || notices_ > 0;
  // Lanes are replaced outside the lock, too: whoever waits for the calls waits for that.
  if (!calls && flow_.lost_lanes.empty()) return;
  taken_ = true;
  flow_.calls_running.fetch_add(1);
  reports_.swap(flow_.reports);
}

void DeferredCalls::Run() {
  for (const std::string& report : reports_) flow_.Report(report);
  RunLaunches();
  RunCallbacks();
}

bool DeferredCalls::TakeLaunch(BoundedList<DeferredLaunch, 1>& next) {
  MutexLock lock(&tick_mutex_);
  flow_.deferred.Take(1, next);
  if (next.empty()) return false;
  const LaunchId launch = next[0].request.parts[0].launch;
  if (flow_.launches.Find(launch) != nullptr && !flow_.device_lost.load()) {
    launching_ = launch;
    launching_queue_ = next[0].queue;
    return true;
  }
  EndLaunch(*next[0].queue);
  return false;
}

// One at a time: what a function leaves that ends the thread stays in the flow. A queue has at most
// one launch here, so another thread cannot overtake it.
void DeferredCalls::RunLaunches() {
  BoundedList<DeferredLaunch, 1> next;
  for (; launches_ > 0; --launches_) {
    if (TakeLaunch(next)) Launch(next[0].request);
    if (next.empty()) return;  // another Tick took them
  }
}

void DeferredCalls::RunCallbacks() {
  while (notices_ > 0) {
    {
      MutexLock lock(&tick_mutex_);
      flow_.notices.Take(notices_, batch_);
      batch_done_ = 0;
    }
    if (batch_.empty()) return;  // another Tick took them
    notices_ -= static_cast<size_t>(batch_.size());
    while (batch_done_ < batch_.size()) {
      const Notice& notice = batch_[batch_done_++];
      const std::string thrown = RunCallback(notice.callback, notice.user, notice.record);
      if (!thrown.empty()) flow_.Report(thrown);
    }
  }
}

// Launches opaque work, which calls the application's function. No lock is held, so that the
// function may submit.
void DeferredCalls::Launch(LaunchRequest& request) {
  std::string failure;
  TicketId ticket;
  const auto on_failure = [&](const std::string& what) {
    MutexLock lock(&tick_mutex_);
    Task* const task = flow_.launches.Find(launching_);
    if (task == nullptr) return;  // given up meanwhile
    task->progress.enqueue_failed = true;
    ticket = task->record.ticket;
    failure = what;
  };
  const GuardedEnqueue guard(request, on_failure);
  if (request.after_lane != kNoLane) flow_.device->FlushLane(request.after_lane);
  const absl::Status status = CatchExhaustion([&] { return flow_.device->Launch(request); });
  if (!failure.empty()) ReportEnqueueFailure(flow_, ticket, failure);
  DeviceCompletion refused;
  refused.launch = launching_;
  refused.outcome = IsDeviceLost(status) ? Outcome::kDeviceLost : Outcome::kFailed;
  refused.start_ns = refused.end_ns = flow_.device->NowNs();
  refused.error_code = NativeCodeOf(status);
  MutexLock lock(&tick_mutex_);
  if (!status.ok()) flow_.refused.Add(refused);
  EndLaunch(*launching_queue_);
  launching_ = LaunchId{};
}

void DeferredCalls::EndLaunch(Queue& queue) {
  queue.deferred.fetch_sub(1, std::memory_order_release);
  flow_.dirty = true;
}

DeferredCalls::~DeferredCalls() {
  if (!taken_) return;
  {
    MutexLock lock(&tick_mutex_);
    if (launching_) {  // its function ended the thread, and the device has not launched it
      DeviceCompletion failed;
      failed.launch = launching_;
      failed.outcome = Outcome::kFailed;
      failed.start_ns = failed.end_ns = flow_.device->NowNs();
      flow_.refused.Add(failed);
      EndLaunch(*launching_queue_);
    }
    while (batch_done_ < batch_.size()) flow_.notices.Push(batch_[batch_done_++]);
  }
  flow_.calls_running.fetch_sub(1);
}

}  // namespace gpushare::core
