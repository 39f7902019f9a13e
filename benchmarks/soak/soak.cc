// The run of a soak: its actors, their threads or virtual time, the samples of memory, the end. See
// soak.h.

#include "benchmarks/soak/soak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/soak/soak_actors.h"
#include "benchmarks/soak/soak_ledger.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
constexpr bool kAddressSanitizer = false;
#endif

constexpr int kLcApps = 2;
constexpr int kBeApps = 5;
constexpr int kLcSlots = 4;
constexpr int kBeSlots = 3;
constexpr int kBeThreads = 3;
constexpr double kLcTaskMs = 0.15;
constexpr double kBeTaskMsMin = 2;
constexpr double kBeTaskMsMax = 8;

class Soak {
 public:
  explicit Soak(const Options& options) : shared_(options) {}

  Report Run() {
    Report report;
    report.device = shared_.options.device;
    if (std::string error = Open(); error.empty()) error = MakeActors();
    const int64_t begin_ns = shared_.runtime.NowNs();
    if (shared_.ledger.failure_count_ == 0) {
      Drive(begin_ns);
      Close();
    }
    report.seconds = static_cast<double>(shared_.runtime.NowNs() - begin_ns) / 1e9;
    CheckMemory(report);
    shared_.ledger.Report(report);
    return report;
  }

 private:
  std::string Open() {
    std::string why;
    const Options& options = shared_.options;
    const bool simulated = options.device == "sim";
    work_ = simulated ? MakeSimulatedWork() : MakeCudaWork(&why);
    if (work_ == nullptr) return Failed(why);
    RuntimeOptions runtime;
    runtime.device = options.device.c_str();
    runtime.drive = simulated ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD;
    runtime.seed = options.seed;
    runtime.sim_faults = options.sim_faults.empty() ? nullptr : options.sim_faults.c_str();
    auto created = Runtime::Create(runtime);
    if (!created.ok()) return Failed(created.status().ToString());
    shared_.runtime = *created;
    auto device = shared_.runtime.Device();
    if (!device.ok()) return Failed(device.status().ToString());
    shared_.device = *device;
    return {};
  }

  std::string Failed(const std::string& why) {
    shared_.ledger.Fail(why);
    return why;
  }

  std::string MakeActors() {
    const uint64_t seed = shared_.options.seed * 1000;
    groups_.resize(2 + kBeThreads);
    for (int i = 0; i < kLcApps; ++i) {
      auto actor = std::make_unique<LcActor>(shared_, "lc" + std::to_string(i),
                                             seed + 1 + static_cast<uint64_t>(i), i == 0);
      for (int s = 0; s < kLcSlots; ++s) {
        const std::vector<Kind> kinds =
            s % 2 == 0 ? std::vector<Kind>{Kind::kSincos, Kind::kBlackScholes, Kind::kMd5}
                       : std::vector<Kind>{Kind::kGraph};
        const std::string error = actor->AddSlot(*work_, kinds, kLcTaskMs);
        if (!error.empty()) return Failed(error);
      }
      groups_[0].push_back(std::move(actor));
    }
    int kind = 0;
    for (int i = 0; i < kBeApps; ++i) {
      auto actor = std::make_unique<BeActor>(shared_, "be" + std::to_string(i),
                                             seed + 101 + static_cast<uint64_t>(i));
      for (int s = 0; s < kBeSlots; ++s, ++kind) {
        const double part = static_cast<double>(kind % 4) / 3;
        const double solo_ms = kBeTaskMsMin + (kBeTaskMsMax - kBeTaskMsMin) * part;
        const std::string error =
            actor->AddSlot(*work_, {static_cast<Kind>(kind % kBeKinds)}, solo_ms);
        if (!error.empty()) return Failed(error);
      }
      groups_[static_cast<size_t>(2 + i % kBeThreads)].push_back(std::move(actor));
    }
    groups_[1].push_back(std::make_unique<Director>(shared_, seed + 201));
    return {};
  }

  void Drive(int64_t begin_ns) {
    const auto span_ns = static_cast<int64_t>(shared_.options.seconds * 1e9);
    shared_.stop_ns = begin_ns + span_ns;
    sample_ns_ = std::max<int64_t>(1, std::min<int64_t>(kSecondNs, span_ns / 50));
    if (shared_.device.virtual_time) {
      DriveVirtual();
    } else {
      DriveReal();
    }
  }

  // Everything on this thread, in order of time.
  void DriveVirtual() {
    struct Due {
      int64_t ns;
      Actor* actor;
    };
    std::vector<Due> due;
    for (auto& group : groups_) {
      for (auto& actor : group) due.push_back({0, actor.get()});
    }
    while (!due.empty()) {
      const auto next = std::min_element(due.begin(), due.end(),
                                         [](const Due& a, const Due& b) { return a.ns < b.ns; });
      if (next->ns > shared_.runtime.NowNs() &&
          !shared_.ledger.Expect(shared_.runtime.PollUntil(next->ns), "gpushare_poll_until")) {
        return;
      }
      const int64_t now_ns = shared_.runtime.NowNs();
      Sample(now_ns);
      next->ns = next->actor->Step(now_ns);
      if (next->actor->done() || GaveUp(now_ns)) due.erase(next);
    }
  }

  // Tasks that a broken library never completes keep their actor; it is left behind.
  bool GaveUp(int64_t now_ns) const {
    return shared_.ledger.stopped() && now_ns > shared_.stop_ns + 2 * kPatienceNs;
  }

  void DriveReal() {
    std::vector<std::thread> threads;
    std::atomic<int> running{static_cast<int>(groups_.size())};
    for (auto& group : groups_) {
      threads.emplace_back([this, &group, &running] {
        RunGroup(group);
        --running;
      });
    }
    while (running.load() > 0) {
      Sample(shared_.runtime.NowNs());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    for (std::thread& thread : threads) thread.join();
  }

  void RunGroup(std::vector<std::unique_ptr<Actor>>& group) {
    for (;;) {
      bool all = true;
      int64_t next_ns = GPUSHARE_NEVER;
      for (auto& actor : group) {
        const int64_t now_ns = shared_.runtime.NowNs();
        if (actor->done() || GaveUp(now_ns)) continue;
        next_ns = std::min(next_ns, actor->Step(now_ns));
        all = false;
      }
      if (all) return;
      const int64_t rest_ns = std::min(next_ns - shared_.runtime.NowNs(), kLookNs);
      if (rest_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(rest_ns));
    }
  }

  void Sample(int64_t now_ns) {
    if (now_ns < next_sample_ns_) return;
    next_sample_ns_ = now_ns + sample_ns_;
    resident_.push_back(ResidentBytes());
    const int64_t free_bytes = work_->FreeDeviceBytes();
    if (free_bytes > 0) device_used_.push_back(-free_bytes);
    if (!shared_.options.progress || resident_.size() % 10 != 0) return;
    std::fprintf(stderr, "%6.0f s to go: %lld accepted, %lld checked, %lld failures, %.1f MB\n",
                 static_cast<double>(shared_.stop_ns - now_ns) / 1e9,
                 static_cast<long long>(shared_.ledger.accepted.load()),
                 static_cast<long long>(shared_.ledger.answers_checked.load()),
                 static_cast<long long>(shared_.ledger.failure_count_.load()),
                 static_cast<double>(resident_.back()) / (1 << 20));
  }

  // Everything is complete, and the library says so too.
  void Close() {
    Ledger& ledger = shared_.ledger;
    ledger.Expect(shared_.runtime.Drain(shared_.runtime.NowNs() + 10 * kSecondNs),
                  "gpushare_runtime_drain");
    auto stats = shared_.runtime.Stats();
    if (ledger.Expect(stats.status(), "gpushare_runtime_stats_get")) {
      ledger.evictions = stats->evictions;
      ledger.launches = stats->launches;
      if (stats->tasks_pending != 0 || stats->hung != 0 || stats->device_lost != 0 ||
          stats->app_count != 0) {
        ledger.Fail("At the end " + std::to_string(stats->tasks_pending) + " tasks are pending, " +
                    std::to_string(stats->hung) + " launches hung, " +
                    std::to_string(stats->app_count) + " apps are left, and the device is " +
                    (stats->device_lost != 0 ? "lost." : "there."));
      }
    }
    groups_.clear();
    ledger.Expect(shared_.runtime.Shutdown(shared_.runtime.NowNs() + 10 * kSecondNs),
                  "gpushare_runtime_shutdown");
    if (ledger.accepted != ledger.ok + ledger.cancelled + ledger.failed_waiting) {
      ledger.Fail(std::to_string(ledger.accepted) + " tasks were accepted, and " +
                  std::to_string(ledger.ok + ledger.cancelled + ledger.failed_waiting) +
                  " ended as they should.");
    }
    if (ledger.callbacks != ledger.callbacks_expected) {
      ledger.Fail(std::to_string(ledger.callbacks) + " callbacks came, and " +
                  std::to_string(ledger.callbacks_expected) + " were asked for.");
    }
    if (ledger.answers_checked == 0) ledger.Fail("No answer was checked.");
  }

  void CheckMemory(Report& report) {
    // The sanitizer keeps what is freed for a while.
    constexpr int64_t kResidentMax = (kAddressSanitizer ? 16 : 8) << 20;
    constexpr int64_t kDeviceMax = 32 << 20;
    report.resident = GrowthOf(resident_);
    report.device_memory = GrowthOf(device_used_);
    Grows("The process", report.resident, kResidentMax);
    Grows("Device memory", report.device_memory, kDeviceMax);
  }
  void Grows(const char* what, const Growth& growth, int64_t limit_bytes) {
    if (!growth.enough || growth.bytes() < limit_bytes) return;
    shared_.ledger.Fail(std::string(what) + " grew by " + std::to_string(growth.bytes()) +
                        " bytes, and the limit is " + std::to_string(limit_bytes) + ".");
  }

  Shared shared_;
  std::unique_ptr<Work> work_;
  std::vector<std::vector<std::unique_ptr<Actor>>> groups_;
  std::vector<int64_t> resident_;
  std::vector<int64_t> device_used_;
  int64_t sample_ns_ = kSecondNs;
  int64_t next_sample_ns_ = 0;
};

}  // namespace

Report RunSoak(const Options& options) { return Soak(options).Run(); }

}  // namespace gpushare::soak
