// Recorded launches of compiled kernels on a GPU: their twins give the original's bits, whole, in
// slices and under evictions at random times, and what the twins cost. GPUSHARE_PTX_LAUNCHES names
// the folder that tests/python/gpu/record_launches.py filled, GPUSHARE_PTX_REPEATS the evicted runs
// of each kernel, GPUSHARE_PTX_REPORT a file that gets a line of JSON for each kernel.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda/code/recorded_launch.h"
#include "tests/cuda/gpu_fixture.h"

namespace gpushare::cuda {
namespace {

using Json = nlohmann::json;

constexpr int kRepeats = 200;
constexpr int kEvictionsMax = 3;  // of a run
constexpr int kTimedRuns = 25;    // not where fewer repeats are asked for
constexpr int kSlices = 3;
constexpr int64_t kStartNs = 5'000;  // from a launch to its first block, about
constexpr int kFailuresMax = 10;
constexpr char kNotRepeatable[] = "the original does not repeat itself";

int RepeatsAsked() {
  const char* const text = std::getenv("GPUSHARE_PTX_REPEATS");
  return text == nullptr ? kRepeats : std::atoi(text);
}

double Quantile(std::vector<int64_t> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return static_cast<double>(
      values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))]);
}

class PtxLaunchesGpuTest : public GpuTest {
 protected:
  PtxLaunchesGpuTest() : GpuTest(true) {}

  // What cannot be launched has failed, and `refusal_` says why.
  core::DeviceCompletion Run(const RecordedLaunch& recorded, core::Form form, int64_t begin,
                             int64_t count) {
    if (Enqueue(recorded, form, begin, count, true)) return NextCompletion();
    core::DeviceCompletion failed;
    failed.outcome = core::Outcome::kFailed;
    return failed;
  }
  bool Enqueue(const RecordedLaunch& recorded, core::Form form, int64_t begin, int64_t count,
               bool first) {
    core::LaunchRequest request;
    core::LaunchPart& part = request.parts[0];
    request.form = form;
    request.block_begin = begin;
    part.launch = core::LaunchId{++launches_};
    part.lane = lane_;
    part.work.kernel = &recorded.kernel;
    part.block_count = count;
    part.work.grid = recorded.grid;
    part.work.arguments = recorded.arguments.data();
    part.work.arguments_bytes = recorded.arguments.size();
    if (form == core::Form::kWorkers) {
      part.counter = 0;
      part.reset_counter = first;
      part.epoch = ++epoch_;
    }
    const absl::Status status = device_->Launch(request);
    if (!status.ok()) refusal_ = std::string(status.message());
    return status.ok();
  }
  void SpinUntil(core::TimeNs until_ns) const {
    while (device_->NowNs() < until_ns) {
    }
  }

  // Evicts up to kEvictionsMax times within `range_ns` behind each start. Adds to latencies_ns.
  bool RunEvicted(const RecordedLaunch& recorded, int64_t range_ns,
                  std::vector<int64_t>& latencies_ns) {
    for (int evictions = 0;; ++evictions) {
      if (!Enqueue(recorded, core::Form::kWorkers, 0, recorded.block_tasks, evictions == 0))
        return false;
      const uint64_t epoch = epoch_;
      core::TimeNs evicted_ns = 0;
      if (evictions < kEvictionsMax) {
        SpinUntil(device_->NowNs() +
                  static_cast<int64_t>(random_() % static_cast<uint64_t>(range_ns)));
        evicted_ns = device_->NowNs();
        EXPECT_TRUE(device_->Evict(lane_, epoch, 0).ok());
      }
      const core::DeviceCompletion completion = NextCompletion();
      if (completion.outcome == core::Outcome::kFinished) return true;
      if (completion.outcome != core::Outcome::kEvicted) return false;
      latencies_ns.push_back(completion.end_ns - evicted_ns);
    }
  }

  // What is measured of a kernel; `verdict` is "same", or what went wrong.
  Json Examine(RecordedLaunch& recorded) {
    Json report = {{"entry", recorded.kernel.name},
                   {"source", recorded.source},
                   {"blocks", recorded.block_tasks},
                   {"threads", recorded.kernel.resources.threads_per_block}};
    const auto ends = [&report](const std::string& verdict) {
      report["verdict"] = verdict;
      return report;
    };
    core::KernelDesc& kernel = recorded.kernel;
    if (!kernel.ptx()->worker.made()) return ends("refused: " + kernel.ptx()->worker.refusal);
    kernel.id = core::KernelId{++kernels_};
    kernel.evictable = true;
    absl::Status status = device_->DescribeKernel(kernel);
    if (status.ok()) status = device_->PrepareKernel(kernel);
    if (!status.ok()) return ends("not loaded: " + std::string(status.message()));
    if (!kernel.ptx()->worker.made()) return ends("refused: " + kernel.ptx()->worker.refusal);
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel.functions()->original, kernel.resources.threads_per_block,
        static_cast<size_t>(kernel.resources.dynamic_shared_memory_bytes));
    report["workers_per_sm"] = kernel.resources.workers_per_sm_max;
    report["blocks_per_sm"] = blocks;
    refusal_.clear();
    std::string verdict = Compare(recorded, report);
    if (!refusal_.empty()) verdict += ": " + refusal_;
    if (verdict == "same" && RepeatsAsked() >= kTimedRuns) Measure(recorded, report);
    device_->ReleaseKernel(kernel.id);
    return ends(verdict);
  }

  std::string Compare(const RecordedLaunch& recorded, Json& report) {
    const auto original = [&] {
      return recorded.Restore() &&
             Run(recorded, core::Form::kOriginal, 0, recorded.block_tasks).outcome ==
                 core::Outcome::kFinished;
    };
    if (!original() || !recorded.KeepAsExpected()) return "the original fails";
    for (int i = 0; i < 2; ++i) {
      if (!original()) return "the original fails";
      if (recorded.Differing() != 0) return kNotRepeatable;
    }
    const core::DeviceCompletion timed =
        Run(recorded, core::Form::kOriginal, 0, recorded.block_tasks);
    const int64_t range_ns = kStartNs + (timed.end_ns - timed.start_ns);
    std::vector<int64_t> latencies_ns;
    const int repeats = RepeatsAsked();
    for (int i = 0; i < repeats; ++i) {
      if (!recorded.Restore() || !RunEvicted(recorded, range_ns, latencies_ns))
        return "a worker fails";
      if (const uint64_t differing = recorded.Differing(); differing != 0) {
        return "evicted run " + std::to_string(i) + " differs in " + std::to_string(differing) +
               " bytes";
      }
    }
    report["evictions"] = latencies_ns.size();
    report["eviction_p50_us"] = Quantile(latencies_ns, 0.5) / 1e3;
    report["eviction_p99_us"] = Quantile(latencies_ns, 0.99) / 1e3;
    if (!recorded.kernel.ptx()->slice.made()) return "same";
    if (!recorded.Restore()) return "no memory";
    const int64_t slice = std::max<int64_t>(1, (recorded.block_tasks + kSlices - 1) / kSlices);
    for (int64_t begin = 0; begin < recorded.block_tasks; begin += slice) {
      const int64_t count = std::min(slice, recorded.block_tasks - begin);
      if (Run(recorded, core::Form::kSlice, begin, count).outcome != core::Outcome::kFinished)
        return "a slice fails";
    }
    return recorded.Differing() == 0 ? "same" : "slices differ";
  }

  // Original and workers in turns, each on the memory as it was before the launch.
  void Measure(const RecordedLaunch& recorded, Json& report) {
    std::vector<int64_t> original_ns;
    std::vector<int64_t> workers_ns;
    for (int i = 0; i < kTimedRuns; ++i) {
      for (const bool as_workers : {i % 2 == 0, i % 2 != 0}) {
        if (!recorded.Restore()) return;
        const core::DeviceCompletion done =
            Run(recorded, as_workers ? core::Form::kWorkers : core::Form::kOriginal, 0,
                recorded.block_tasks);
        // The clocks are brought together to within some microseconds.
        if (done.outcome != core::Outcome::kFinished || done.end_ns <= done.start_ns) continue;
        (as_workers ? workers_ns : original_ns).push_back(done.end_ns - done.start_ns);
      }
    }
    report["timed"] = std::min(original_ns.size(), workers_ns.size());
    report["original_us"] = Quantile(original_ns, 0.5) / 1e3;
    report["workers_us"] = Quantile(workers_ns, 0.5) / 1e3;
  }

  std::mt19937 random_{40};
  uint64_t launches_ = 0;
  uint64_t epoch_ = 0;
  uint32_t kernels_ = 0;
  std::string refusal_;  // of the last launch that was refused
};

TEST_F(PtxLaunchesGpuTest, TwinsOfRecordedLaunchesGiveTheOriginalsBits) {
  const char* const folder = std::getenv("GPUSHARE_PTX_LAUNCHES");
  if (folder == nullptr) GTEST_SKIP() << "GPUSHARE_PTX_LAUNCHES names no folder.";
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".json") files.push_back(file.path());
  }
  std::sort(files.begin(), files.end());
  const char* const path = std::getenv("GPUSHARE_PTX_REPORT");
  std::ofstream lines(path == nullptr ? "/dev/null" : path);
  int same = 0;
  int failed = 0;
  for (const std::filesystem::path& file : files) {
    const auto recorded = RecordedLaunch::Read(file.string());
    if (!recorded.ok()) {
      ADD_FAILURE() << recorded.status();
      continue;
    }
    const Json report = Examine(**recorded);
    lines << report.dump() << std::endl;
    const std::string verdict = report["verdict"];
    same += verdict == "same" ? 1 : 0;
    if (verdict == "same" || verdict == kNotRepeatable || verdict.rfind("refused", 0) == 0)
      continue;
    ADD_FAILURE() << file << ": " << verdict;
    ASSERT_LT(++failed, kFailuresMax) << "The rest is left out.";
  }
  std::printf("%d of %zu launches: the same bits\n", same, files.size());
  EXPECT_GT(same, 0);
}

}  // namespace
}  // namespace gpushare::cuda
