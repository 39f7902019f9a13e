// One session of CUPTI's range profiler; see launch_counter.h.
//
// Its steps, in order: which metrics the GPU has now (availability), which counters they need
// (config), where values go (counter data), then a pass for each group, then the values.

#include "src/cuda/counters/launch_counter.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "src/core/base/status.h"
#include "src/cuda/counters/metrics.h"

namespace gpushare::cuda {
namespace {

using core::LaunchCounts;
using cupti::Make;

constexpr char kRangeName[] = "gpushare";

// CUPTI has one session a process. A second one is refused here, as CUPTI's answers to it differ by
// the call that meets the first one.
class OnlySession {
 public:
  OnlySession() : held_(!Taken().exchange(true, std::memory_order_acquire)) {}
  ~OnlySession() {
    if (held_) Taken().store(false, std::memory_order_release);
  }
  OnlySession(const OnlySession&) = delete;
  OnlySession& operator=(const OnlySession&) = delete;

  bool held() const { return held_; }

 private:
  static std::atomic<bool>& Taken() {
    static std::atomic<bool> taken = false;
    return taken;
  }

  const bool held_;
};

// Whether nobody can profile where a session is refused so. Any other refusal may come from another
// profiler of this process.
bool RefusesEverybody(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnavailable(status);
}

class Session {
 public:
  Session(const cupti::Calls& calls, void* context)
      : calls_(calls),
        context_(context),
        names_(CountedMetrics().begin(), CountedMetrics().end()) {}

  ~Session() {
    if (profiler_ != nullptr) {
      if (in_range_) Pop().IgnoreError();
      if (started_) Stop().IgnoreError();
      auto params = ForProfiler<cupti::ProfilerParams>();
      calls_.disable(&params);
    }
    if (host_ != nullptr) {
      auto params = Make<cupti::HostParams>();
      params.host = host_;
      calls_.host_deinitialize(&params);
    }
    // CUPTI does not count who initialised it: this ends every profiler of the process.
    if (initialized_ && !others_) {
      auto params = Make<cupti::InitializeParams>();
      calls_.deinitialize(&params);
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  absl::Status Open(int ordinal) {
    absl::Status status = Enable(ordinal);
    others_ = !status.ok() && !RefusesEverybody(status);
    GPUSHARE_RETURN_IF_ERROR(status);
    GPUSHARE_RETURN_IF_ERROR(MakeCounterData());
    return SetConfig();
  }

  absl::Status RunPasses(absl::FunctionRef<absl::Status()> run) {
    for (size_t pass = 0; pass < kPassesMax; ++pass) {
      auto start = ForProfiler<cupti::ProfilerParams>();
      GPUSHARE_RETURN_IF_ERROR(Check(calls_.start(&start), "cuptiRangeProfilerStart"));
      started_ = true;
      auto push = ForProfiler<cupti::PushRangeParams>();
      push.name = kRangeName;
      GPUSHARE_RETURN_IF_ERROR(Check(calls_.push_range(&push), "cuptiRangeProfilerPushRange"));
      in_range_ = true;
      GPUSHARE_RETURN_IF_ERROR(run());
      GPUSHARE_RETURN_IF_ERROR(Pop());
      GPUSHARE_ASSIGN_OR_RETURN(const bool done, Stop());
      if (done) return absl::OkStatus();
    }
    return absl::InternalError(absl::StrCat("The kernel is not counted: CUPTI asks for more than ",
                                            kPassesMax, " passes."));
  }

  absl::StatusOr<LaunchCounts> Values() {
    auto decode = ForProfiler<cupti::DecodeParams>();
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.decode(&decode), "cuptiRangeProfilerDecodeData"));
    std::vector<double> values(names_.size());
    auto evaluate = Make<cupti::EvaluateParams>();
    evaluate.host = host_;
    evaluate.counter_data = counter_data_.data();
    evaluate.counter_data_bytes = counter_data_.size();
    evaluate.names = names_.data();
    evaluate.count = names_.size();
    evaluate.values = values.data();
    GPUSHARE_RETURN_IF_ERROR(
        Check(calls_.evaluate(&evaluate), "cuptiProfilerHostEvaluateToGpuValues"));
    return CountsOf(values);
  }

 private:
  absl::Status Check(int result, const char* call) const {
    return cupti::StatusOf(calls_, result, call);
  }

  template <class Params>
  Params ForProfiler() const {
    auto params = Make<Params>();
    params.profiler = profiler_;
    return params;
  }

  absl::Status Pop() {
    in_range_ = false;
    auto params = ForProfiler<cupti::ProfilerParams>();
    return Check(calls_.pop_range(&params), "cuptiRangeProfilerPopRange");
  }

  absl::Status Enable(int ordinal) {
    auto initialize = Make<cupti::InitializeParams>();
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.initialize(&initialize), "cuptiProfilerInitialize"));
    initialized_ = true;
    auto chip = Make<cupti::ChipNameParams>();
    chip.device_ordinal = static_cast<size_t>(ordinal);
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.chip_name(&chip), "cuptiDeviceGetChipName"));
    GPUSHARE_RETURN_IF_ERROR(ReadAvailability());
    auto host = Make<cupti::HostInitializeParams>();
    host.chip = chip.name;
    host.availability = availability_.data();
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.host_initialize(&host), "cuptiProfilerHostInitialize"));
    host_ = host.host;
    GPUSHARE_RETURN_IF_ERROR(Configure(chip.name));
    auto enable = Make<cupti::EnableParams>();
    enable.context = context_;
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.enable(&enable), "cuptiRangeProfilerEnable"));
    profiler_ = enable.profiler;
    return absl::OkStatus();
  }

  // Ends a pass; whether it was the last one.
  absl::StatusOr<bool> Stop() {
    started_ = false;
    auto params = ForProfiler<cupti::StopParams>();
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.stop(&params), "cuptiRangeProfilerStop"));
    return params.all_passes_done != 0;
  }

  // Where the driver does not allow counters, this is the first call that says so.
  absl::Status ReadAvailability() {
    auto params = Make<cupti::AvailabilityParams>();
    params.context = context_;
    constexpr char kCall[] = "cuptiProfilerGetCounterAvailability";
    GPUSHARE_RETURN_IF_ERROR(Check(calls_.availability(&params), kCall));
    availability_.resize(params.image_bytes);
    params.image = availability_.data();
    return Check(calls_.availability(&params), kCall);
  }

  absl::Status AddMetrics(const char* chip) {
    const int result = Add(names_.data(), names_.size());
    if (result == cupti::kInvalidParameter || result == cupti::kInvalidMetricName) {
      for (const char*& name : names_) {
        if (Add(&name, 1) != result) continue;
        return absl::UnavailableError(absl::StrCat("The kernel is not counted: the GPU (", chip,
                                                   ") has no metric ", name, "."));
      }
    }
    return Check(result, "cuptiProfilerHostConfigAddMetrics");
  }

  // In one call: CUPTI gives the metrics of each call passes of their own, which on an H200 makes
  // 26 of 7.
  int Add(const char** names, size_t count) {
    auto params = Make<cupti::AddMetricsParams>();
    params.host = host_;
    params.names = names;
    params.count = count;
    return calls_.add_metrics(&params);
  }

  absl::Status Configure(const char* chip) {
    GPUSHARE_RETURN_IF_ERROR(AddMetrics(chip));
    auto size = Make<cupti::ConfigSizeParams>();
    size.host = host_;
    GPUSHARE_RETURN_IF_ERROR(
        Check(calls_.config_size(&size), "cuptiProfilerHostGetConfigImageSize"));
    config_.resize(size.bytes);
    auto image = Make<cupti::ConfigImageParams>();
    image.host = host_;
    image.bytes = config_.size();
    image.image = config_.data();
    return Check(calls_.config_image(&image), "cuptiProfilerHostGetConfigImage");
  }

  absl::Status MakeCounterData() {
    auto size = ForProfiler<cupti::DataSizeParams>();
    size.names = names_.data();
    size.count = names_.size();
    size.ranges_max = 1;
    size.nodes_max = 1;
    GPUSHARE_RETURN_IF_ERROR(
        Check(calls_.data_size(&size), "cuptiRangeProfilerGetCounterDataSize"));
    counter_data_.resize(size.bytes);
    auto image = ForProfiler<cupti::DataImageParams>();
    image.bytes = counter_data_.size();
    image.image = counter_data_.data();
    return Check(calls_.data_image(&image), "cuptiRangeProfilerCounterDataImageInitialize");
  }

  absl::Status SetConfig() {
    auto params = ForProfiler<cupti::SetConfigParams>();
    params.config_bytes = config_.size();
    params.config = config_.data();
    params.counter_data_bytes = counter_data_.size();
    params.counter_data = counter_data_.data();
    return Check(calls_.set_config(&params), "cuptiRangeProfilerSetConfig");
  }

  const cupti::Calls& calls_;
  void* const context_;
  std::vector<const char*> names_;
  std::vector<uint8_t> availability_;
  std::vector<uint8_t> config_;
  std::vector<uint8_t> counter_data_;
  bool initialized_ = false;
  bool others_ = false;    // another profiler of the process may use CUPTI
  bool started_ = false;   // a pass is under way
  bool in_range_ = false;  // of that pass
  void* host_ = nullptr;
  void* profiler_ = nullptr;
};

}  // namespace

absl::StatusOr<LaunchCounts> CountLaunches(const cupti::Calls& calls, void* context, int ordinal,
                                           absl::FunctionRef<absl::Status()> run) {
  const OnlySession only;
  if (!only.held()) {
    return absl::FailedPreconditionError(
        "The kernel is not counted: another pre-run of this process counts, and CUPTI has one "
        "session a process; run it after that one.");
  }
  Session session(calls, context);
  GPUSHARE_RETURN_IF_ERROR(session.Open(ordinal));
  GPUSHARE_RETURN_IF_ERROR(session.RunPasses(run));
  return session.Values();
}

}  // namespace gpushare::cuda
