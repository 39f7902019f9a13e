// The application's functions that a Tick leaves to run. See application_calls.h.

#include "src/core/flow/application_calls.h"

#include "absl/strings/str_cat.h"
#include "src/core/base/application_call.h"
#include "src/core/flow/verbs/guarded_enqueue.h"
#include "src/core/flow/verbs/request.h"
#include "src/core/seams/native_code.h"

namespace gpushare::core {

std::string RunCallback(CompletionCallback callback, void* user, const CompletionRecord& record) {
  const std::string thrown = ThrownBy([&] { callback(user, record); });
  if (thrown.empty()) return thrown;
  return absl::StrCat("The completion callback of ticket ", record.ticket.value, " threw ", thrown,
                      ".");
}

void ApplicationCalls::Take() {
  if (flow_.reports.empty() && flow_.deferred.empty() && flow_.notices.empty()) return;
  taken_ = true;
  flow_.calls_running.fetch_add(1);
  reports_.swap(flow_.reports);
  launches_.swap(flow_.deferred);
  if (flow_.notices.empty()) return;
  notices_.swap(flow_.notices);
  flow_.notices.swap(flow_.spare_notices);
}

void ApplicationCalls::Run() {
  for (const std::string& report : reports_) flow_.Report(report);
  while (launches_done_ < launches_.size()) Launch(launches_[launches_done_++]);
  while (notices_done_ < notices_.size()) {
    const Notice& notice = notices_[notices_done_++];
    const std::string thrown = RunCallback(notice.callback, notice.user, notice.record);
    if (!thrown.empty()) flow_.Report(thrown);
  }
}

// Launches opaque work, which calls the application's function. No lock is held, so that the
// function may submit.
void ApplicationCalls::Launch(LaunchRequest& request) {
  launching_ = request.parts[0].launch;
  std::string thrown;
  TicketId ticket;
  const auto on_throw = [&](const std::string& what) {
    MutexLock lock(&tick_mutex_);
    Task* const task = flow_.launches.Find(launching_);
    if (task == nullptr) return;  // given up meanwhile
    task->progress.enqueue_threw = true;
    ticket = task->record.ticket;
    thrown = what;
  };
  const GuardedEnqueue guard(request, on_throw);
  const absl::Status status = flow_.device->Launch(request);
  if (!thrown.empty()) ReportEnqueueThrew(flow_, ticket, thrown);
  launching_ = LaunchId{};
  if (status.ok()) return;
  DeviceCompletion refused;
  refused.launch = request.parts[0].launch;
  refused.outcome = IsDeviceLost(status) ? Outcome::kDeviceLost : Outcome::kFailed;
  refused.start_ns = refused.end_ns = flow_.device->NowNs();
  refused.error_code = NativeCodeOf(status);
  MutexLock lock(&tick_mutex_);
  flow_.refused.push_back(refused);
}

ApplicationCalls::~ApplicationCalls() {
  if (!taken_) return;
  {
    MutexLock lock(&tick_mutex_);
    if (launching_) {  // its function ended the thread, and the device has not launched it
      DeviceCompletion failed;
      failed.launch = launching_;
      failed.outcome = Outcome::kFailed;
      failed.start_ns = failed.end_ns = flow_.device->NowNs();
      flow_.refused.push_back(failed);
    }
    flow_.deferred.insert(flow_.deferred.begin(),
                          launches_.begin() + static_cast<std::ptrdiff_t>(launches_done_),
                          launches_.end());
    flow_.notices.insert(flow_.notices.begin(),
                         notices_.begin() + static_cast<std::ptrdiff_t>(notices_done_),
                         notices_.end());
    notices_.clear();
    if (flow_.spare_notices.capacity() < notices_.capacity()) {
      flow_.spare_notices.swap(notices_);
    }
  }
  flow_.calls_running.fetch_sub(1);
}

}  // namespace gpushare::core
