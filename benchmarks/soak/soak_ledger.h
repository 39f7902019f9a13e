// What everything in a soak shares: counters and failures, the runtime, the clock's end. Each actor
// has random numbers of its own. Threads: any.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_LEDGER_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_LEDGER_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "benchmarks/harness/random.h"
#include "benchmarks/soak/soak_report.h"

namespace gpushare::soak {

using benchmarks::Random;

inline constexpr int64_t kSecondNs = 1'000'000'000;
// What a callback or a counter may come after its ticket.
inline constexpr int64_t kLateNs = 5 * kSecondNs;
inline constexpr size_t kFailuresKept = 10;
inline constexpr int64_t kFailuresMax = 50;

// Counters and failures that all actors share.
class Ledger {
 public:
  void Fail(const std::string& sentence) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failures_.size() < kFailuresKept) failures_.push_back(sentence);
    if (failure_count_.fetch_add(1) + 1 >= kFailuresMax) stop_.store(true);
  }
  // `allowed`: statuses beside OK that are no failure here.
  bool Expect(const Status& status, const char* call, std::initializer_list<int> allowed = {}) {
    if (status.ok()) return true;
    if (std::find(allowed.begin(), allowed.end(), status.code()) == allowed.end()) {
      Fail(std::string(call) + " answers " + status.ToString());
    }
    return false;
  }
  bool stopped() const { return stop_.load(); }
  void Stop() { stop_.store(true); }

  void Report(soak::Report& report) {
    const std::lock_guard<std::mutex> lock(mutex_);
    report.counters = {{"accepted", accepted},
                       {"ok", ok},
                       {"cancelled", cancelled},
                       {"refused", refused},
                       {"queries", queries},
                       {"answers_checked", answers_checked},
                       {"callbacks", callbacks},
                       {"callbacks_expected", callbacks_expected},
                       {"failed_waiting", failed_waiting},
                       {"cancels", cancels},
                       {"cancels_overtaken", cancels_overtaken},
                       {"waits_timed_out", waits_timed_out},
                       {"apps", apps},
                       {"releases_refused", releases_refused},
                       {"reservations", reservations},
                       {"quiesces", quiesces},
                       {"policy_changes", policy_changes},
                       {"evictions", evictions},
                       {"launches", launches},
                       {"failures", failure_count_}};
    report.failure_count = failure_count_;
    report.failures = failures_;
  }

  std::atomic<int64_t> accepted{0}, ok{0}, cancelled{0};
  std::atomic<int64_t> refused{0};  // RESOURCE_EXHAUSTED at submit
  // Their records name the ticket that they waited for, which was cancelled or failed in turn.
  std::atomic<int64_t> failed_waiting{0};
  std::atomic<int64_t> queries{0}, answers_checked{0}, callbacks{0}, callbacks_expected{0};
  std::atomic<int64_t> cancels{0};            // asked for
  std::atomic<int64_t> cancels_overtaken{0};  // the task's work was all done first: VERDICT_OK
  std::atomic<int64_t> waits_timed_out{0};    // DEADLINE_EXCEEDED
  std::atomic<int64_t> apps{0};               // created
  std::atomic<int64_t> releases_refused{0};   // while work of the queue was not complete
  std::atomic<int64_t> reservations{0};       // made, changed or removed
  std::atomic<int64_t> quiesces{0}, policy_changes{0};
  std::atomic<int64_t> evictions{0}, launches{0};  // by the library's own statistics
  std::atomic<int64_t> failure_count_{0};

 private:
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::string> failures_;
};

struct Shared {
  explicit Shared(const Options& wanted) : options(wanted) {}

  const Options& options;
  Runtime runtime;
  DeviceInfo device;
  Ledger ledger;
  std::atomic<int64_t> stop_ns{0};  // no new work from then on
  std::atomic<uint64_t> broken_at{0};

  // One time in a hundred, if this is what is to be broken.
  bool Breaks(Break what) { return options.broken == what && broken_at.fetch_add(1) % 100 == 99; }
  bool Ending(int64_t now_ns) const { return ledger.stopped() || now_ns >= stop_ns; }
  // In virtual time everything runs on one thread, and nothing comes later by itself.
  std::chrono::nanoseconds LateMax() const {
    return std::chrono::nanoseconds(device.virtual_time != 0 ? 0 : kLateNs);
  }
  // A mean time between events: a part of the run, within bounds.
  double MeanNs(double part, double least_s, double most_s) const {
    return std::clamp(options.seconds * part, least_s, most_s) * 1e9;
  }
};

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_LEDGER_H_
