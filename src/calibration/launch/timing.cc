// Timed launches and bounded waits; see timing.h.

#include "src/calibration/launch/timing.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/calibration/launch/request.h"
#include "src/core/base/status.h"

namespace gpushare::models {
namespace {

// Longer waits yield the processor: how soon an end is seen matters for short launches only.
constexpr core::TimeNs kSpinNs = 2 * 1000 * 1000;

bool IsWorkers(const core::LaunchRequest& request) { return request.form == core::Form::kWorkers; }

}  // namespace

absl::Status LaunchTimer::CheckCancelled() const {
  if (options_.cancelled && options_.cancelled()) {
    return absl::CancelledError("The calibration was cancelled.");
  }
  return absl::OkStatus();
}

absl::Status LaunchTimer::Begin(core::LaunchRequest request) {
  const bool fused = request.form == core::Form::kFused;
  request.parts[0].launch = core::LaunchId{next_launch_++};
  if (IsWorkers(request) || fused)
    request.parts[0].epoch = ++epochs_[static_cast<size_t>(request.parts[0].lane)];
  if (fused) {
    core::LaunchPart& partner = request.parts[1];
    partner.launch = core::LaunchId{next_launch_++};
    partner.epoch = partner.lane == request.parts[0].lane
                        ? request.parts[0].epoch
                        : ++epochs_[static_cast<size_t>(partner.lane)];
  }
  InFlight entry;
  entry.name = NameOf(request);
  entry.lane = request.parts[0].lane;
  entry.timed.completion.launch = request.parts[0].launch;
  entry.timed.called_ns = device_.NowNs();
  if (absl::Status status = device_.Launch(request); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(entry.name, " cannot be launched: ", status.message()));
  }
  entry.timed.issued_ns = device_.NowNs();
  in_flight_.push_back(entry);
  if (!fused) return absl::OkStatus();
  entry.lane = request.parts[1].lane;
  entry.timed.completion.launch = request.parts[1].launch;
  in_flight_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::StatusOr<core::TimeNs> LaunchTimer::WriteWord(core::LaneIndex lane, uint64_t epoch,
                                                    int64_t* issue_ns) {
  const core::TimeNs called = device_.NowNs();
  GPUSHARE_RETURN_IF_ERROR(device_.Evict(lane, epoch, 0));
  if (issue_ns != nullptr) *issue_ns = device_.NowNs() - called;
  return called;
}

absl::StatusOr<core::TimeNs> LaunchTimer::Evict(core::LaneIndex lane, int64_t* issue_ns) {
  return WriteWord(lane, epochs_[static_cast<size_t>(lane)], issue_ns);
}

absl::StatusOr<core::TimeNs> LaunchTimer::EvictNext(core::LaneIndex lane) {
  return WriteWord(lane, epochs_[static_cast<size_t>(lane)] + 1, nullptr);
}

void LaunchTimer::Poll() {
  std::array<core::DeviceCompletion, kBatchMax> reports;
  const size_t count = device_.PollCompletions(absl::MakeSpan(reports));
  if (count == 0) return;
  const core::TimeNs now = device_.NowNs();
  for (size_t i = 0; i < count; ++i) {
    for (InFlight& entry : in_flight_) {
      // A device may report a launch twice.
      if (entry.done || entry.timed.completion.launch != reports[i].launch) continue;
      entry.done = true;
      entry.timed.completion = reports[i];
      entry.timed.seen_ns = now;
    }
  }
}

bool LaunchTimer::AllDone(bool background) const {
  return std::all_of(in_flight_.begin(), in_flight_.end(), [background](const InFlight& entry) {
    return entry.done || entry.background != background;
  });
}

void LaunchTimer::PassTime(core::TimeNs until, bool spin) {
  if (virtual_time()) {
    device_.AdvanceTo(std::min(device_.NextEventNs(), until));
  } else if (!spin) {
    std::this_thread::yield();
  }
}

void LaunchTimer::WaitUntil(core::TimeNs time) {
  for (;;) {
    Poll();
    const core::TimeNs left = time - device_.NowNs();
    if (left <= 0) return;
    PassTime(time, left <= kSpinNs);
  }
}

absl::Status LaunchTimer::GiveUp(bool background) {
  absl::Status status;
  for (InFlight& entry : in_flight_) {
    if (entry.done || entry.background != background) continue;
    device_.AbandonLane(entry.lane);
    status = absl::DeadlineExceededError(absl::StrCat(
        entry.name, " on lane ", entry.lane, " has not completed after ",
        (device_.NowNs() - entry.timed.called_ns) / 1'000'000, " ms, and the limit is ",
        options_.hang_limit_ns / 1'000'000, " ms; the lane is given up."));
  }
  std::erase_if(in_flight_,
                [background](const InFlight& entry) { return entry.background == background; });
  return status;
}

absl::StatusOr<std::vector<TimedLaunch>> LaunchTimer::Finish() { return FinishAll(false); }

absl::StatusOr<std::vector<TimedLaunch>> LaunchTimer::FinishAll(bool background) {
  // Each launch has the whole limit: those of a batch follow each other.
  const core::TimeNs begun = device_.NowNs();
  const core::TimeNs limit =
      begun + options_.hang_limit_ns * static_cast<int64_t>(std::max<size_t>(1, in_flight_.size()));
  for (Poll(); !AllDone(background); Poll()) {
    const core::TimeNs now = device_.NowNs();
    if (now >= limit) return GiveUp(background);
    PassTime(limit, now - begun <= kSpinNs);
  }
  return TakeFinished(background);
}

absl::StatusOr<std::vector<TimedLaunch>> LaunchTimer::TakeFinished(bool background) {
  std::vector<TimedLaunch> timed;
  absl::Status status;
  timed.reserve(in_flight_.size());
  for (const InFlight& entry : in_flight_) {
    if (entry.background != background) continue;
    const core::DeviceCompletion& completion = entry.timed.completion;
    timed.push_back(entry.timed);
    if (completion.outcome == core::Outcome::kDeviceLost) {
      status = absl::UnavailableError(absl::StrCat("The device was lost while ", entry.name,
                                                   " ran, with code ", completion.error_code, "."));
    } else if (completion.outcome == core::Outcome::kFailed && status.ok()) {
      status = absl::InternalError(absl::StrCat(entry.name, " on lane ", entry.lane,
                                                " failed with code ", completion.error_code, "."));
    }
  }
  std::erase_if(in_flight_,
                [background](const InFlight& entry) { return entry.background == background; });
  if (!status.ok()) return status;
  return timed;
}

absl::Status LaunchTimer::BeginBackground(const core::LaunchRequest& request,
                                          core::TimeNs settle_ns) {
  GPUSHARE_RETURN_IF_ERROR(Begin(request));
  in_flight_.back().background = true;
  Wait(settle_ns);
  return absl::OkStatus();
}

bool LaunchTimer::BackgroundRuns() {
  Poll();
  return !AllDone(true);
}

absl::StatusOr<bool> LaunchTimer::EndBackground(core::LaneIndex lane) {
  const bool ran = BackgroundRuns();
  GPUSHARE_RETURN_IF_ERROR(Evict(lane).status());
  GPUSHARE_RETURN_IF_ERROR(FinishAll(true).status());
  return ran;
}

void LaunchTimer::Drain() {
  for (const InFlight& entry : in_flight_) {
    if (entry.background && !entry.done) Evict(entry.lane).status().IgnoreError();
  }
  for (const bool background : {false, true}) FinishAll(background).IgnoreError();
}

absl::StatusOr<std::vector<TimedLaunch>> LaunchTimer::RunToEnd(const core::LaunchRequest& request) {
  GPUSHARE_RETURN_IF_ERROR(Begin(request));
  GPUSHARE_ASSIGN_OR_RETURN(std::vector<TimedLaunch> done, Finish());
  for (const TimedLaunch& part : done) {
    if (part.completion.outcome == core::Outcome::kFinished) continue;
    return absl::InternalError(
        absl::StrCat(NameOf(request), " was evicted, and nobody asked for that."));
  }
  return done;
}

absl::StatusOr<TimedLaunch> LaunchTimer::RunOne(const core::LaunchRequest& request) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, RunToEnd(request));
  return done.front();
}

absl::StatusOr<double> LaunchTimer::RunFused(const core::LaunchRequest& request) {
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, RunToEnd(request));
  const core::DeviceCompletion& first = done.front().completion;
  const core::DeviceCompletion& second = done.back().completion;
  return static_cast<double>(std::max(first.end_ns, second.end_ns) -
                             std::min(first.start_ns, second.start_ns));
}

absl::StatusOr<double> LaunchTimer::RunBatch(const core::LaunchRequest& request, int count) {
  for (int i = 0; i < count; ++i) {
    core::LaunchRequest one = request;
    if (IsWorkers(one)) {
      one.parts[0].counter = i;
    } else {
      one.more_follows = i + 1 < count;
    }
    GPUSHARE_RETURN_IF_ERROR(Begin(one));
  }
  GPUSHARE_ASSIGN_OR_RETURN(const std::vector<TimedLaunch> done, Finish());
  // Of other forms than workers the time is the host's view: it includes the latencies of a launch
  // and a completion, which every batch has once.
  const TimedLaunch& first = done.front();
  const TimedLaunch& last = done.back();
  return static_cast<double>(IsWorkers(request) ? last.completion.end_ns - first.completion.start_ns
                                                : last.seen_ns - first.called_ns);
}

absl::StatusOr<double> LaunchTimer::TimePerLaunch(const core::LaunchRequest& request, int count) {
  double each = 0;
  for (int i = 0; i < kTimingTriesMax; ++i) {
    GPUSHARE_RETURN_IF_ERROR(CheckCancelled());
    GPUSHARE_ASSIGN_OR_RETURN(const double one, RunBatch(request, 1));
    GPUSHARE_ASSIGN_OR_RETURN(const double many, RunBatch(request, count));
    each = (many - one) / (count - 1);
    if (each >= 1) return each;
    ++dropped_;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      NameOf(request), " takes ", each, " ns a launch, the last of ", kTimingTriesMax,
      " samples that are all below 1 ns, and a device on which work takes no time has nothing to "
      "calibrate."));
}

}  // namespace gpushare::models
