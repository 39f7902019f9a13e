// The open-loop load driver: submits queries at their arrivals, keeps best-effort tasks pending,
// and measures latencies from the intended arrivals. In C++, because an interpreter would delay
// arrivals.
//
// Invariants: a callback only uses memory that lives as long as the load; each task is counted
// once. Threads: Run on the caller's; callbacks on the scheduler's (in virtual time on the
// caller's).

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/pytorch/catalogue.h"
#include "examples/pytorch/errors.h"

namespace gpushare::example {
namespace {

// The window starts a little after now, so that its first arrival is not late.
constexpr int64_t kLeadNs = 1'000'000;
// BE runs this long before the window: clocks rise and the models get their first samples.
constexpr int64_t kWarmUpNs = 50'000'000;
constexpr int64_t kWarmUpQueryNsMax = 1'000'000'000;
constexpr int64_t kDrainNs = int64_t{60} * 1'000'000'000;
// Best-effort tasks are cancelled so long after the last query: a policy may hold one for ever that
// takes longer than any query can wait.
constexpr int64_t kHeldNs = int64_t{2} * 1'000'000'000;
constexpr int64_t kCancelStepNs = int64_t{100} * 1'000'000;
constexpr int64_t kVirtualStepNs = 1'000'000;

void Check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  throw std::runtime_error(std::string(gpushare_status_name(status)) + ": " +
                           gpushare_last_error_message());
}

void CountAt(int64_t* counters, int64_t count, int64_t index) {
  if (index >= 0 && index < count) ++counters[index];
}

double OverlapShare(int64_t from_ns, int64_t to_ns, int64_t start_ns, int64_t end_ns) {
  const int64_t overlap = std::min(to_ns, end_ns) - std::max(from_ns, start_ns);
  if (overlap <= 0) return 0;
  return to_ns > from_ns ? static_cast<double>(overlap) / static_cast<double>(to_ns - from_ns) : 1;
}

}  // namespace
}  // namespace gpushare::example

using gpushare::example::Check;
using gpushare::example::CountAt;

struct gpushare_example_load {
 public:
  explicit gpushare_example_load(const gpushare_example_load_options& options)
      : options_(options),
        queries_(static_cast<size_t>(options.query_count + options.warm_up_queries)) {}

  void Run(gpushare_example_load_result& result) {
    if (options_.be_queue != nullptr) {
      for (int32_t i = 0; i < options_.be_depth; ++i) SubmitBe();
    }
    WarmUp();
    const int64_t start_ns = NowNs() + gpushare::example::kLeadNs;
    WaitUntil(start_ns);
    for (int32_t i = 0; i < options_.query_count; ++i) {
      const int64_t arrival_ns = start_ns + options_.arrivals_ns[i];
      WaitUntil(arrival_ns);
      SubmitLc(static_cast<size_t>(i), arrival_ns, options_.latencies_ns + i);
    }
    if (options_.query_count == 0) WaitUntil(start_ns + options_.span_ns);
    const int64_t end_ns = std::max(NowNs(), start_ns + 1);
    stopped_.store(true);
    Drain();
    Collect(start_ns, end_ns, result);
  }

  void Stop() { stopped_.store(true); }

 private:
  struct Query {
    gpushare_example_load* load = nullptr;
    int64_t arrival_ns = 0;
    int64_t* latency_ns = nullptr;  // null: a warm-up
  };
  struct Span {
    int64_t from_ns;
    int64_t to_ns;
  };

  int64_t NowNs() const {
    int64_t now_ns = 0;
    Check(gpushare_now_ns(options_.runtime, &now_ns));
    return now_ns;
  }

  bool virtual_time() const { return options_.virtual_time != 0; }

  void WaitUntil(int64_t time_ns) {
    if (virtual_time()) return Check(gpushare_poll_until(options_.runtime, time_ns));
    while (NowNs() < time_ns) {
    }
  }

  // Waits until `done` or the deadline. True if it is done.
  template <class Condition>
  bool WaitFor(Condition done, int64_t deadline_ns) {
    while (!done()) {
      const int64_t now_ns = NowNs();
      if (now_ns >= deadline_ns) return false;
      if (virtual_time()) WaitUntil(now_ns + gpushare::example::kVirtualStepNs);
    }
    return true;
  }

  void WarmUp() {
    const int64_t begin_ns = NowNs();
    if (options_.lc_queue != nullptr) {
      for (int32_t i = 0; i < options_.warm_up_queries; ++i) {
        const int64_t now_ns = NowNs();
        SubmitLc(static_cast<size_t>(options_.query_count + i), now_ns, nullptr);
        if (!WaitFor([&] { return lc_done_.load() == lc_accepted_.load(); },
                     now_ns + gpushare::example::kWarmUpQueryNsMax)) {
          throw std::runtime_error("A warm-up query does not complete within 1 s.");
        }
      }
    }
    WaitUntil(begin_ns + gpushare::example::kWarmUpNs);
  }

  // Retries on a full queue. The wait counts, because latencies start at the intended arrival.
  void SubmitLc(size_t index, int64_t arrival_ns, int64_t* latency_ns) {
    Query& query = queries_[index];
    query = {this, arrival_ns, latency_ns};
    gpushare_task_options task = *options_.lc_task;
    task.arrival_ns = arrival_ns;
    task.callback = &gpushare_example_load::OnLc;
    task.callback_user = &query;
    const int64_t give_up_ns = NowNs() + gpushare::example::kDrainNs;
    lc_accepted_.fetch_add(1);
    while (true) {
      const gpushare_status status = gpushare_submit_lc(options_.lc_queue, &task, nullptr);
      if (status == GPUSHARE_OK) return;
      if (status != GPUSHARE_RESOURCE_EXHAUSTED || NowNs() > give_up_ns) {
        lc_accepted_.fetch_sub(1);
        Check(status);
      }
      if (virtual_time()) WaitUntil(NowNs() + gpushare::example::kVirtualStepNs);
    }
  }

  void SubmitBe() {
    gpushare_task_options task = *options_.be_task;
    task.callback = &gpushare_example_load::OnBe;
    task.callback_user = this;
    be_accepted_.fetch_add(1);
    gpushare_ticket ticket = {};
    const gpushare_status status = gpushare_submit_be(options_.be_queue, &task, &ticket);
    if (status == GPUSHARE_OK) return KeepOrRelease(ticket);
    be_accepted_.fetch_sub(1);
    if (!stopped_.load()) Fail(gpushare_last_error_message());
  }

  // Of a submit and a callback for one ticket the first keeps it and the second releases it.
  void KeepOrRelease(gpushare_ticket ticket) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto kept =
          std::find_if(be_tickets_.begin(), be_tickets_.end(),
                       [ticket](const gpushare_ticket& one) { return one.value == ticket.value; });
      if (kept == be_tickets_.end()) return be_tickets_.push_back(ticket);
      be_tickets_.erase(kept);
    }
    if (gpushare_ticket_release(options_.runtime, ticket) != GPUSHARE_OK) {
      Fail(gpushare_last_error_message());
    }
  }

  void CancelBe() {
    std::vector<gpushare_ticket> pending;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      cancelled_ = true;
      pending = be_tickets_;
    }
    for (const gpushare_ticket& ticket : pending) gpushare_ticket_cancel(options_.runtime, ticket);
  }

  static void OnLc(void* user, const gpushare_completion_record* record) {
    const auto* query = static_cast<const Query*>(user);
    query->load->CompleteLc(*query, *record);
  }

  void CompleteLc(const Query& query, const gpushare_completion_record& record) {
    if (query.latency_ns != nullptr) {
      *query.latency_ns = record.complete_ns - query.arrival_ns;
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counts_.lc_queries;
      CountAt(counts_.lc_places, GPUSHARE_EXAMPLE_PLACES, record.place);
      CountAt(counts_.lc_reasons, GPUSHARE_EXAMPLE_REASONS, record.launch_reason);
    }
    CountVerdict(record);
    lc_done_.fetch_add(1);  // last, because the waiting thread may then go on
  }

  static void OnBe(void* user, const gpushare_completion_record* record) {
    static_cast<gpushare_example_load*>(user)->CompleteBe(*record);
  }

  void CompleteBe(const gpushare_completion_record& record) {
    KeepOrRelease(record.ticket);
    if (record.verdict == GPUSHARE_VERDICT_CANCELLED && IsCancelled()) {
      be_done_.fetch_add(1);
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counts_.be_tasks;
      counts_.be_evictions += record.evictions;
      CountAt(counts_.be_places, GPUSHARE_EXAMPLE_PLACES, record.place);
      CountAt(counts_.be_reasons, GPUSHARE_EXAMPLE_REASONS, record.launch_reason);
      CountAt(counts_.be_holds, GPUSHARE_EXAMPLE_REASONS, record.hold_reason);
      // Devices without timestamps report no start: use the launch call instead.
      spans_.push_back({record.start_ns > 0 ? record.start_ns : record.launch_ns,
                        record.end_ns > 0 ? record.end_ns : record.complete_ns});
    }
    CountVerdict(record);
    if (!stopped_.load()) SubmitBe();
    be_done_.fetch_add(1);
  }

  void CountVerdict(const gpushare_completion_record& record) {
    if (record.verdict == GPUSHARE_VERDICT_OK) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counts_.wrong_verdicts;
    }
    Fail(std::string("A task ends with the verdict '") + gpushare_verdict_name(record.verdict) +
         "' (code " + std::to_string(record.error_code) + ").");
  }

  bool IsCancelled() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return cancelled_;
  }

  void Fail(const std::string& sentence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.empty()) failure_ = sentence;
  }

  void Drain() {
    const auto lc_done = [&] { return lc_done_.load() == lc_accepted_.load(); };
    const auto be_done = [&] { return be_done_.load() == be_accepted_.load(); };
    const int64_t end_ns = NowNs() + gpushare::example::kDrainNs;
    bool done = WaitFor(lc_done, end_ns);
    done = done && WaitFor(be_done, std::min(end_ns, NowNs() + gpushare::example::kHeldNs));
    // What is on the device and cannot leave refuses, and is asked again.
    while (!done && lc_done() && NowNs() < end_ns) {
      CancelBe();
      done = WaitFor(be_done, std::min(end_ns, NowNs() + gpushare::example::kCancelStepNs));
    }
    if (done) return;
    throw std::runtime_error("The tasks do not complete within 60 s of the last arrival.");
  }

  void Collect(int64_t start_ns, int64_t end_ns, gpushare_example_load_result& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result = counts_;
    result.span_ns = end_ns - start_ns;
    double tasks = 0;
    for (const Span& span : spans_) {
      tasks += gpushare::example::OverlapShare(span.from_ns, span.to_ns, start_ns, end_ns);
    }
    if (options_.be_task != nullptr) {
      // A graph has no block tasks; it counts as one.
      result.be_block_tasks =
          tasks * static_cast<double>(std::max<int64_t>(1, options_.be_task->block_tasks));
    }
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }

  const gpushare_example_load_options options_;
  std::vector<Query> queries_;  // never resized: callbacks hold addresses
  std::atomic<bool> stopped_{false};
  std::atomic<int64_t> lc_accepted_{0};
  std::atomic<int64_t> lc_done_{0};
  std::atomic<int64_t> be_accepted_{0};
  std::atomic<int64_t> be_done_{0};
  std::mutex mutex_;  // guards the members below
  gpushare_example_load_result counts_ = {};
  std::vector<Span> spans_;
  std::vector<gpushare_ticket> be_tickets_;  // of tasks that are pending
  bool cancelled_ = false;
  std::string failure_;
};

namespace gpushare::example {
namespace {

thread_local std::string last_error;

void CheckOptions(const gpushare_example_load_options& options) {
  if (options.runtime == nullptr) throw std::invalid_argument("The load has no runtime.");
  if (options.query_count < 0 || options.warm_up_queries < 0 || options.be_depth < 0 ||
      options.span_ns < 0) {
    throw std::invalid_argument("A count or the span of the load is negative.");
  }
  const bool lc = options.lc_task != nullptr && options.arrivals_ns != nullptr &&
                  options.latencies_ns != nullptr;
  if (options.lc_queue != nullptr && !lc) {
    throw std::invalid_argument("The load has an LC queue and no task, arrivals or latencies.");
  }
  if (options.lc_queue == nullptr && options.query_count > 0) {
    throw std::invalid_argument("The load has queries and no LC queue.");
  }
  if (options.be_queue != nullptr && options.be_task == nullptr) {
    throw std::invalid_argument("The load has a BE queue and no task for it.");
  }
}

}  // namespace

void SetError(const std::string& sentence) { last_error = sentence; }

}  // namespace gpushare::example

const char* gpushare_example_error(void) { return gpushare::example::last_error.c_str(); }

int32_t gpushare_example_load_new(const gpushare_example_load_options* options,
                                  gpushare_example_load** out_load) {
  return gpushare::example::Guard([&] {
    gpushare::example::CheckOptions(*options);
    *out_load = std::make_unique<gpushare_example_load>(*options).release();
  });
}

int32_t gpushare_example_load_run(gpushare_example_load* load,
                                  gpushare_example_load_result* out_result) {
  const int32_t code = gpushare::example::Guard([&] { load->Run(*out_result); });
  load->Stop();  // also after a failure, so that callbacks submit nothing more
  return code;
}

void gpushare_example_load_free(gpushare_example_load* load) { delete load; }
