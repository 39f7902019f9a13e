#include "examples/servers/model/be_job.h"

#include <chrono>
#include <cstdio>
#include <deque>
#include <utility>

namespace gpushare::example {
namespace {

// Until the task is complete. Not OK also where it did not run to its end.
Status Finish(const Ticket& ticket) {
  Status waited = ticket.Wait();
  if (!waited.ok()) return waited;
  Result<CompletionRecord> record = ticket.Record();
  if (!record.ok()) return record.status();
  const gpushare_verdict verdict = record.value().verdict;
  if (verdict == GPUSHARE_VERDICT_OK) return Status();
  return Status(GPUSHARE_ABORTED, std::string("A task ends with the verdict ") +
                                      gpushare_verdict_name(verdict) + ".");
}

constexpr size_t kInFlight = 2;  // the second one hides the time that it takes to submit one

App MakeApp(const Runtime& runtime, const std::string& name, double weight) {
  AppOptions options;
  options.name = name.c_str();
  options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  options.weight = weight;
  options.tasks_max = 16;
  return runtime.CreateApp(options).value();
}

}  // namespace

BeJob::BeJob(const Runtime& runtime, const std::string& name, double weight)
    : runtime_(runtime),
      work_(MakeWork(runtime)),
      kernel_(work_->RegisterBe(runtime, name.c_str())),
      app_(MakeApp(runtime, name, weight)),
      queue_(app_.CreateQueue().value()),
      feeder_([this] { Feed(); }) {}

void BeJob::Stop() {
  BeginStop();
  if (feeder_.joinable()) feeder_.join();
}

// Whoever stops the job knows why tasks end early, and that none is taken any more.
void BeJob::EndWith(const Status& status) {
  if (stopping_.exchange(true)) return;
  std::fprintf(stderr, "BE work ends: %s\n", status.ToString().c_str());
}

void BeJob::Feed() {
  TaskOptions task = work_->BeTask();
  task.kernel = kernel_.get();
  const bool virtual_time = runtime_.Device().value().virtual_time == 1;
  std::deque<Ticket> queued;
  while (!stopping_.load() || !queued.empty()) {
    while (!stopping_.load() && queued.size() < kInFlight) {
      Result<Ticket> ticket = queue_.SubmitBe(task);
      if (!ticket.ok()) {
        EndWith(ticket.status());
        break;
      }
      queued.push_back(*std::move(ticket));
    }
    if (queued.empty()) return;
    if (const Status status = Finish(queued.front()); !status.ok()) EndWith(status);
    queued.pop_front();
    // In virtual time a task takes no time, and this loop would take a core.
    if (virtual_time) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gpushare::example
