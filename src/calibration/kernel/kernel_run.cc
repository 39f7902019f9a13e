// What the stages of one kernel share; see kernel_run.h.

#include "src/calibration/kernel/kernel_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/base/statistics.h"
#include "src/calibration/launch/request.h"
#include "src/core/checks/occupancy.h"
#include "src/models/samples/query_name.h"

namespace gpushare::models {
namespace {

// With three samples one stall of the host does not move the median.
constexpr size_t kSamplesLeast = 3;
// The host's clock jitters by 1 us, which is below 0.1 % of a batch that lasts so long.
constexpr double kBatchNs = 2e6;

}  // namespace

KernelRun::KernelRun(LaunchTimer& launch_timer, const core::Lanes& device_lanes,
                     const CalibrationItem& sample, const CalibrationOptions& calibration_options,
                     Notes& result_notes)
    : timer(launch_timer),
      lanes(device_lanes),
      item(sample),
      options(calibration_options),
      notes(result_notes),
      sm_count(timer.device().capabilities().profile.sm_count),
      workers_per_sm(WorkersPerSm(item.kernel, timer.device().capabilities().profile)),
      plain_lane(lanes.Pick(core::kWholeDevice, core::LaneClass::kLc, 0)),
      worker_lane(lanes.Pick(core::kWholeDevice, core::LaneClass::kBe, 0)),
      begun_ns_(timer.device().NowNs()) {}

void KernelRun::BeginStage(double share_end) {
  stage_end_ns_ =
      begun_ns_ + static_cast<core::TimeNs>(options.seconds_per_kernel * 1e9 * share_end);
}

bool KernelRun::TakeMore(size_t taken, size_t least, int32_t most) const {
  return taken < static_cast<size_t>(most) && (taken < least || TimeLeft());
}

bool KernelRun::TakeMore(size_t taken) const {
  return TakeMore(taken, kSamplesLeast, options.repeats);
}

core::LaunchRequest KernelRun::Ordinary() const { return OrdinaryRequest(item, plain_lane); }

core::LaunchRequest KernelRun::Workers(int64_t block_tasks, int32_t workers) const {
  return WorkerRequest(item, worker_lane, block_tasks, workers);
}

int KernelRun::BatchFor(double duration_ns) const {
  return static_cast<int>(
      std::clamp(1 + std::ceil(Ratio(kBatchNs, duration_ns)), 2.0, static_cast<double>(kBatchMax)));
}

SampleRow KernelRun::SoloRow(const core::LaunchRequest& request, std::vector<double> durations_ns,
                             int32_t sms) const {
  SampleRow row;
  row.kernel = item.kernel.name;
  row.form = request.form;
  if (const core::LibraryCall* call = item.kernel.library_call()) row.call = *call;
  row.input_size = ParseQueryName(item.kernel.name).input_size;
  row.block_tasks = request.parts[0].block_count;
  row.sms = sms == 0 ? sm_count : sms;
  row.workers_per_sm = request.workers / row.sms;
  row.ns = std::move(durations_ns);
  return row;
}

void KernelRun::NoteImpossible(size_t count, absl::string_view what) const {
  models::NoteImpossible(notes, absl::StrCat("Kernel '", item.kernel.name, "'"), count, what);
}

}  // namespace gpushare::models
