// The CUDA device: implements the seam of src/core/seams/device.h on one GPU. README.md lists its
// parts.
//
// Where in the flow: launch and complete.
// Threads: any thread calls Launch, Evict, FlushLane and NowNs. One thread polls. One thread at a
// time makes places, lanes and kernels.

#include "src/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/mutex.h"
#include "src/core/base/quiet_thread.h"
#include "src/core/checks/launch_check.h"
#include "src/core/seams/graph_cut.h"
#include "src/cuda/code/kernel_table.h"
#include "src/cuda/code/prepared_functions.h"
#include "src/cuda/counters/cupti.h"
#include "src/cuda/counters/launch_counter.h"
#include "src/cuda/driver/await_stream.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/device_loss.h"
#include "src/cuda/driver/driver.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/driver/probe.h"
#include "src/cuda/graphs/prepared_graphs.h"
#include "src/cuda/lanes/busy_time.h"
#include "src/cuda/lanes/claim_counters.h"
#include "src/cuda/lanes/claims_reader.h"
#include "src/cuda/lanes/completion_poller.h"
#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/cuda_lanes.h"
#include "src/cuda/lanes/lane_lock.h"
#include "src/cuda/launcher.h"
#include "src/cuda/library/library_calls.h"

namespace gpushare::cuda {
namespace {

using core::LaneIndex;
using core::PlaceIndex;
using core::TimeNs;

// The time that the destructor waits for running launches and for the driver to free memory.
constexpr std::chrono::seconds kCloseMax{2};

// A launch numbers its block tasks with 32 bits, and CUDA's grids end there too.
constexpr int64_t kBlockTasksMax = 2147483647;

core::DeviceProfile ProfileOf(const Context& context, const core::DeviceProfile& given) {
  char name[256] = "unknown GPU";
  context.api().cuDeviceGetName(name, sizeof(name), context.device());
  // Constants that were measured on another GPU model do not apply to this one.
  core::DeviceProfile profile = given.gpu_model == name ? given : core::DeviceProfile();
  profile.name = "cuda";
  profile.gpu_model = name;
  profile.sm_count = context.Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  profile.registers_per_sm =
      context.Attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  profile.shared_memory_per_sm_bytes =
      context.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  profile.threads_per_sm = context.Attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  profile.blocks_per_sm = context.Attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  return profile;
}

// The ring's entry of a launch, as far as all forms agree.
InFlightLaunch EntryOf(const core::LaunchPart& part, TimeNs now_ns) {
  InFlightLaunch entry;
  entry.launch = part.launch;
  entry.launched_ns = now_ns;
  entry.block_tasks = part.block_count;
  return entry;
}

// Everything that the driver has to free, in the order in which it is made. It outlives its device
// where the driver frees it later.
struct Parts {
  explicit Parts(std::unique_ptr<Context> opened)
      : context(std::move(opened)),
        places(*context),
        functions(*context),
        graphs(*context, places, &WarmKernel, &functions),
        claims_reader(*context),
        library(LibraryCalls::Make(
            context->api(), [this](PlaceIndex place) { return places.MakeStream(place, 0); })),
        lanes(*context, places, *library, loss, making) {}

  // Frees all on the calling thread. May wait for all work of the context.
  static void Free(std::unique_ptr<Parts> parts) {
    const std::unique_ptr<Context> context = std::move(parts->context);  // the parts point to it
    const ScopedContext current(*context);
    const ScopedRelaxedCapture relaxed(context->api());
    parts->lanes.Close();
    parts->claims_reader.Close();
    parts = nullptr;
  }

  std::unique_ptr<Context> context;
  Places places;
  PreparedFunctions functions;
  PreparedGraphs graphs;
  ClaimsReader claims_reader;
  std::unique_ptr<LibraryCalls> library;
  ClaimCounters counters;
  DeviceLoss loss;
  core::Mutex making;  // held while a place or a lane is made
  CudaLanes lanes;
};

// Frees the parts on a thread of its own and returns at `until` at the latest. The driver's calls
// that free wait for all work of the context, the application's too; that thread then ends when the
// work has ended. Without a thread the caller waits.
void FreeUntil(std::unique_ptr<Parts> parts, Moment until) {
  try {
    std::promise<void> promise;
    const std::future<void> freed = promise.get_future();
    std::thread thread =
        core::StartQuietThread([parts = std::move(parts), promise = std::move(promise)]() mutable {
          Parts::Free(std::move(parts));
          promise.set_value();
        });
    if (freed.wait_until(until) == std::future_status::ready) {
      thread.join();
    } else {
      thread.detach();
    }
  } catch (const std::exception&) {
    // The parts were destroyed with the thread's function.
  }
}

class CudaDevice final : public core::Device {
 public:
  explicit CudaDevice(std::unique_ptr<Context> context)
      : parts_(std::make_unique<Parts>(std::move(context))) {
    for (std::atomic<int32_t>& claimed : segments_claimed_) claimed.store(-1);
  }

  ~CudaDevice() override { Close(); }

  absl::Status Open(const core::DeviceProfile& given) {
    const ScopedContext current(*context_);
    const ScopedRelaxedCapture relaxed(context_->api());
    capabilities_.profile = ProfileOf(*context_, given);
    capabilities_.eviction = true;
    capabilities_.timestamps = true;
    capabilities_.reads_claims = true;
    capabilities_.pageable_copies_block = true;
    capabilities_.block_tasks_max = kBlockTasksMax;
    core::DeviceProfile& profile = capabilities_.profile;
    const absl::Status split = places_.Split(profile.sm_count);
    capabilities_.partitions = split.ok();
    if (split.ok()) profile.sm_granularity = places_.granularity();
    if (split.ok()) profile.sm_groups = places_.groups();
    busy_time_ =
        std::make_unique<BusyTime>(profile.Groups(), profile.sm_granularity, profile.Remainder());
    poller_ = std::make_unique<CompletionPoller>(profile, places_, *busy_time_);
    launcher_ =
        std::make_unique<Launcher>(*context_, places_, functions_, graphs_, library_, counters_);
    if (absl::Status status = counters_.Allocate(*context_); !status.ok()) return status;
    int least = 0;
    int greatest = 0;
    GPUSHARE_CU_RETURN(context_->api(), cuCtxGetStreamPriorityRange(&least, &greatest));
    if (absl::Status status = claims_reader_.Open(greatest); !status.ok()) return status;
    return lanes_.Open(least, greatest);
  }

  TimeNs NowNs() const override { return clock_.NowNs(); }
  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }

  absl::Status DescribeKernel(core::KernelDesc& kernel) override {
    const ScopedRelaxedCapture relaxed(context_->api());
    PreparedGraphs::Describe(kernel);
    return functions_.Describe(kernel);
  }

  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    absl::Status status = CheckKernelId("Kernel", kernel.id);
    if (!status.ok()) return status;
    const ScopedRelaxedCapture relaxed(context_->api());
    if (kernel.functions() != nullptr) {
      status = functions_.Prepare(kernel);
      if (!status.ok() || !functions_.Find(kernel.id)->yields) return status;
      return counters_.AllocateYieldLists(*context_);
    }
    if (kernel.graph() != nullptr) return graphs_.Prepare(kernel);
    const ScopedContext current(*context_);
    return library_.Prepare(kernel);
  }

  void ReleaseKernel(core::KernelId kernel) override {
    const ScopedRelaxedCapture relaxed(context_->api());
    graphs_.Release(kernel);
    functions_.Release(kernel);
  }

  void RetireKernel(core::KernelId kernel) override { functions_.Forget(kernel); }

  core::GraphCut CutOf(const core::KernelDesc& graph) const override {
    return graphs_.CutOf(graph.id);
  }

  absl::StatusOr<std::vector<core::NodePiece>> CutAtNodes(
      const core::KernelDesc& graph, absl::Span<const core::NodeKernel> kernels) override {
    const ScopedRelaxedCapture relaxed(context_->api());
    return graphs_.CutAtNodes(graph.id, kernels);
  }

  absl::Span<const core::SpeedPoint> SpeedsOf(core::KernelId graph) const override {
    return graphs_.SpeedsOf(graph);
  }

  absl::Status PrepareFusedKernel(core::FusedKernelDesc& fused) override {
    absl::Status status = CheckKernelId("Fused kernel", fused.id);
    const ScopedRelaxedCapture relaxed(context_->api());
    return status.ok() ? functions_.PrepareFused(fused) : status;
  }

  bool Confines(core::KernelId kernel, PlaceIndex place) const override {
    return graphs_.Confines(kernel, place);
  }

  absl::Status CreatePlace(PlaceIndex place, const core::PlaceSpec& spec) override {
    absl::Status status = core::CheckNewPlace(place, spec, capabilities_.profile);
    if (!status.ok()) return status;
    if (!capabilities_.partitions) {
      return absl::UnimplementedError(
          "This GPU or its driver has no green contexts, and so no "
          "partitions.");
    }
    if (loss_.lost()) return loss_.AsStatus();
    const core::MutexLock lock(&parts_->making);
    if (places_.Has(place)) return core::PlaceExists(place);
    const ScopedRelaxedCapture relaxed(context_->api());
    if (status = places_.Create(place, spec); !status.ok()) return status;
    status = graphs_.AddPlace(place);
    // The library makes no call to a device that is lost.
    if (!status.ok() && !absl::IsDataLoss(status)) places_.Destroy(place);
    return status;
  }

  absl::Status DestroyPlace(PlaceIndex place) override {
    if (loss_.lost()) return loss_.AsStatus();
    if (place == core::kWholeDevice || !places_.Has(place)) return core::NoSuchPlace(place);
    if (!library_.MayRemoveLanes()) {
      return absl::FailedPreconditionError(
          absl::StrCat("Place ", place, " has handles that prepared library calls need."));
    }
    const ScopedContext current(*context_);
    const ScopedRelaxedCapture relaxed(context_->api());
    if (absl::Status status = lanes_.RemoveFrom(place); !status.ok()) return status;
    const core::MutexLock lock(&parts_->making);
    graphs_.RemovePlace(place);
    places_.Destroy(place);
    return absl::OkStatus();
  }

  absl::StatusOr<LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    const ScopedRelaxedCapture relaxed(context_->api());
    return lanes_.Create(spec);
  }
  absl::Status ReplaceLane(LaneIndex index, const core::LaneSpec& spec) override {
    return lanes_.Replace(index, spec);
  }
  void AbandonLane(LaneIndex index) override { lanes_.Abandon(index); }

  absl::Status Launch(const core::LaunchRequest& request) override {
    const LaneIndex index = request.parts[0].lane;
    CudaLane* lane = lanes_.Find(index);
    if (lane == nullptr) return CudaLanes::NoSuchLane(index);
    if (absl::Status status = core::CheckLaunchRequest(request); !status.ok()) return status;
    if (absl::Status status = CudaLanes::CheckNotAbandoned(*lane, index); !status.ok()) {
      return status;
    }
    if (loss_.lost()) return loss_.AsStatus();
    const ScopedContext current(*context_);
    if (request.form == core::Form::kOpaque && request.parts[0].work.host_function != nullptr) {
      return CallAndLaunch(*lane, request);
    }
    if (request.form == core::Form::kFused) return LaunchFused(*lane, request);
    const LaneLock lock(*lane);
    return LaunchLocked(*lane, request);
  }

  void FlushLane(LaneIndex index) override {
    if (CudaLane* lane = lanes_.Find(index); lane != nullptr) {
      CudaLanes::RequestMark(*lane, lane->launched.load(std::memory_order_acquire));
    }
  }

  std::optional<int64_t> ReadClaims(int32_t counter) override {
    if (loss_.lost()) return std::nullopt;
    const int32_t segments =
        segments_claimed_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
    if (segments >= 0) return segments;
    const ScopedContext current(*context_);
    const ScopedRelaxedCapture relaxed(context_->api());
    const uint32_t* const address = counters_.At(counter, counters_.SideFor(counter, false));
    return claims_reader_.Read(counter, address);
  }

  absl::Status Evict(LaneIndex index, uint64_t epoch, int32_t workers_to_keep) override {
    return lanes_.Evict(index, epoch, workers_to_keep);
  }

  absl::StatusOr<core::LaunchCounts> CountLaunches(absl::FunctionRef<absl::Status()> run) override {
    if (loss_.lost()) return loss_.AsStatus();
    const absl::StatusOr<cupti::Calls> calls = cupti::Open();
    if (!calls.ok()) return calls.status();
    const ScopedContext current(*context_);
    return cuda::CountLaunches(*calls, context_->primary(), context_->device(), run);
  }

  void LimitSegments(int64_t longest_ns) override {
    longest_segment_ns_.store(longest_ns, std::memory_order_relaxed);
  }

  void* LaneStream(LaneIndex index) override {
    const CudaLane* lane = lanes_.Find(index);
    return lane == nullptr ? nullptr : lane->stream;
  }

  size_t PollCompletions(absl::Span<core::DeviceCompletion> out) override {
    size_t count = 0;
    const bool lost = loss_.lost();
    uint64_t busy = lanes_.Busy();
    if (busy != 0) {
      const TimeNs now_ns = clock_.NowNs();
      const ScopedContext current(*context_);
      const ScopedRelaxedCapture relaxed(context_->api());
      for (; busy != 0 && count < out.size(); busy &= busy - 1) {
        const int index = std::countr_zero(busy);
        CudaLane& lane = *lanes_.Find(index);
        if (lost) {
          count = CompletionPoller::CollectLost(lane, loss_.code(), out, count);
          lane.feed.Take();
        } else if (!lane.abandoned.load(std::memory_order_acquire)) {
          lanes_.SetWantedMark(lane);
          const size_t before = count;
          count = poller_->Collect(context_->api(), lane, now_ns, out, count);
          if (lane.feed.busy() && count < out.size()) {
            count = FeedSegments(lane, now_ns, out, count);
          }
          if (count == before) lanes_.CheckSilent(lane, now_ns);
        }
        lanes_.StopIfEmpty(lane, index);
      }
    }
    poller_->SortByEnd(out.first(count));
    return count;
  }

  TimeNs NextEventNs() const override { return core::kNever; }
  void AdvanceTo(TimeNs /*time*/) override {}
  TimeNs NextLookNs() override {
    TimeNs next_ns = core::kNever;
    if (loss_.lost()) return next_ns;
    const TimeNs now_ns = clock_.NowNs();
    for (uint64_t busy = lanes_.Busy(); busy != 0; busy &= busy - 1) {
      const CudaLane& lane = *lanes_.Find(std::countr_zero(busy));
      if (!lane.feed.busy() || lane.abandoned.load(std::memory_order_acquire)) continue;
      // The launcher has not published this launch yet; once it has, it wakes the polling thread.
      if (lane.launched.load(std::memory_order_acquire) < lane.feed.run().sequence) continue;
      next_ns = std::min(next_ns, lane.feed.NextLookNs(now_ns));
    }
    return next_ns;
  }
  int64_t BusySmNs() const override { return busy_time_->Total(); }

 private:
  // Launches both parts of a fused launch; each has a record in its own lane's ring. It locks both
  // lanes, the lower index first, so that ring order and stream order agree.
  absl::Status LaunchFused(CudaLane& lane,
                           const core::LaunchRequest& request) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const LaneIndex partner_index = request.parts[1].lane;
    CudaLane* const partner = lanes_.Find(partner_index);
    if (partner == nullptr) return CudaLanes::NoSuchLane(partner_index);
    if (absl::Status status = CudaLanes::CheckNotAbandoned(*partner, partner_index); !status.ok()) {
      return status;
    }
    const bool one_lane = partner == &lane;
    const bool partner_first = partner_index < request.parts[0].lane;
    if (!one_lane && partner_first) LockLane(*partner);
    LockLane(lane);
    if (!one_lane && !partner_first) LockLane(*partner);
    const absl::Status status =
        core::CatchExhaustion([&] { return LaunchFusedLocked(lane, *partner, request); });
    lane.mutex.Unlock();
    if (!one_lane) partner->mutex.Unlock();
    return status;
  }

  absl::Status LaunchFusedLocked(CudaLane& lane, CudaLane& partner,
                                 const core::LaunchRequest& request) {
    const LaneIndex lane_index = request.parts[0].lane;
    const LaneIndex partner_index = request.parts[1].lane;
    const bool one_lane = &partner == &lane;
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
    const uint64_t second =
        one_lane ? sequence + 1 : partner.launched.load(std::memory_order_relaxed) + 1;
    absl::Status status = CudaLanes::CheckTakes(lane, lane_index, sequence);
    if (status.ok()) status = CudaLanes::CheckTakes(partner, partner_index, second);
    if (!status.ok()) return status;
    for (const core::LaunchPart& part : request.parts) NoteWorkersCounter(part);
    lanes_.MarkBefore(lane, sequence);
    const TimeNs now_ns = clock_.NowNs();
    InFlightLaunch& entry = lane.At(sequence) = EntryOf(request.parts[0], now_ns);
    InFlightLaunch& other = partner.At(second) = EntryOf(request.parts[1], now_ns);
    entry.workers = entry.fused = other.workers = other.fused = true;
    other.stream_lane = &lane;
    status = launcher_->EnqueueFused(lane, sequence, partner, second, request);
    if (!status.ok()) {
      loss_.Record(status);
      return status;
    }
    entry.signal_error = other.signal_error = Signal(lane, request);
    lanes_.Publish(lane, lane_index, one_lane ? second : sequence);
    if (!one_lane) lanes_.Publish(partner, partner_index, second);
    return absl::OkStatus();
  }

  // Calls the caller's function without a lock, once the lane is known to take the launch. Until it
  // is launched the lane starts no segments, and its ring is as large as the scheduler's table of
  // launches, so the call is never for nothing. The mark that LaunchLocked wants comes behind the
  // work that the function enqueues.
  absl::Status CallAndLaunch(CudaLane& lane, const core::LaunchRequest& request) {
    std::optional<CudaLane::Callback> callback;
    {
      const LaneLock lock(lane);
      absl::Status status = CudaLanes::CheckTakes(
          lane, request.parts[0].lane, lane.launched.load(std::memory_order_relaxed) + 1);
      if (!status.ok()) return status;
      lanes_.MarkQueryBefore(lane);
      if (status = OrderAfter(lane, request); !status.ok()) return status;
      callback.emplace(lane);
    }
    if (absl::Status status = launcher_->WaitForEvents(lane, request); !status.ok()) {
      loss_.Record(status);
      return status;
    }
    request.parts[0].work.host_function(lane.stream, request.parts[0].work.host_user);
    const LaneLock lock(lane);
    return LaunchLocked(lane, request);
  }

  // After the marks of what was launched before: they would wait too. It takes the other lane's
  // mutex inside this one's. No thread takes them the other way round, because work goes on in
  // larger places alone, and the lanes of a fused launch are of one place.
  absl::Status OrderAfter(const CudaLane& lane, const core::LaunchRequest& request) {
    if (request.after_lane == core::kNoLane) return absl::OkStatus();
    absl::Status status = lanes_.OrderAfter(lane, request.after_lane);
    loss_.Record(status);
    return status;
  }

  // The launch starts when the other lane's newest launch has ended, at the earliest.
  void NoteAfter(InFlightLaunch& entry, const core::LaunchRequest& request) const {
    if (request.after_lane == core::kNoLane) return;
    entry.after = lanes_.Find(request.after_lane);
    if (entry.after != nullptr) {
      entry.after_sequence = entry.after->launched.load(std::memory_order_acquire);
    }
  }

  absl::Status LaunchLocked(CudaLane& lane, const core::LaunchRequest& request) {
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
    absl::Status status = CudaLanes::CheckTakes(lane, request.parts[0].lane, sequence);
    if (!status.ok()) return status;
    InFlightLaunch& entry = lane.At(sequence);
    entry = EntryOf(request.parts[0], clock_.NowNs());
    entry.workers = request.form == core::Form::kWorkers;
    entry.segments = request.form == core::Form::kSegments;
    if (entry.segments) return LaunchSegments(lane, sequence, request);
    NoteWorkersCounter(request.parts[0]);
    lanes_.MarkQueryBefore(lane);
    // CallAndLaunch has ordered what the application's function enqueued.
    const bool ordered = request.form == core::Form::kOpaque;
    if (!ordered) status = OrderAfter(lane, request);
    if (!status.ok()) return status;
    NoteAfter(entry, request);
    status = launcher_->Enqueue(lane, sequence, request);
    if (!status.ok()) {
      loss_.Record(status);
      return status;
    }
    entry.signal_error = Signal(lane, request);
    const bool wants_mark = !entry.workers && !request.more_follows;
    const TimeNs launched_ns = entry.launched_ns;
    lanes_.Publish(lane, request.parts[0].lane, sequence);
    if (wants_mark) CudaLanes::RequestMark(lane, sequence);
    // In a long query the submitter sets a mark that is due. Otherwise the poller would lock the
    // lane for it.
    if (request.more_follows) lanes_.MarkIfDue(lane, launched_ns);
    return absl::OkStatus();
  }

  // Puts the first segments on the stream; polls of the lane put the others there.
  absl::Status LaunchSegments(CudaLane& lane, uint64_t sequence,
                              const core::LaunchRequest& request) {
    const core::LaunchPart& part = request.parts[0];
    if (lane.callbacks.load(std::memory_order_relaxed) > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", part.lane,
                       " is in an opaque task's function and takes no graph in "
                       "segments."));
    }
    const absl::Span<const CUgraphExec> segments =
        graphs_.SegmentsFor(part.work.kernel->id, lane.spec.place);
    if (segments.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Graph '", part.work.kernel->name, "' has no segments on this device."));
    }
    std::atomic<int32_t>& claimed = segments_claimed_[static_cast<size_t>(part.counter)];
    std::atomic<int64_t>& rest_ns = segments_rest_ns_[static_cast<size_t>(part.counter)];
    if (part.reset_counter) claimed.store(0, std::memory_order_relaxed);
    if (part.reset_counter) rest_ns.store(0, std::memory_order_relaxed);
    lanes_.MarkBefore(lane, sequence);
    absl::Status status = launcher_->WaitForEvents(lane, request);
    if (status.ok()) {
      SegmentRun run;
      run.segments = segments;
      run.durations_ns = graphs_.SegmentTimes(part.work.kernel->id);
      run.segment_ns = core::SegmentNsOf(*part.work.kernel);
      if (request.longer_segments) {
        run.longer = graphs_.LongerFor(part.work.kernel->id, lane.spec.place);
        run.groups = graphs_.GroupsFor(part.work.kernel->id, lane.spec.place);
        run.longest_ns = &longest_segment_ns_;
      }
      run.graph = part.work.kernel->id;
      run.block_tasks_ns = graphs_.BlockTasksOf(run.graph);
      run.workers = launcher_.get();
      run.lane = &lane;
      run.evicts_workers = lane.words.eviction_word != nullptr;
      run.rest_ns = rest_ns.load(std::memory_order_relaxed);
      run.mean_ns = request.graph_ns / static_cast<int64_t>(segments.size());
      run.first = static_cast<size_t>(std::max(0, claimed.load(std::memory_order_relaxed)));
      run.sequence = sequence;
      run.epoch = static_cast<uint32_t>(part.epoch);
      run.counter = part.counter;
      run.eviction_word = lane.words.host_eviction_word;
      run.signal = static_cast<CUevent>(request.signal_event);
      run.starts_at_once = lane.reported.load(std::memory_order_relaxed) + 1 == sequence &&
                           request.wait_events.empty();
      const TimeNs starts_ns =
          lane.At(sequence).launched_ns + capabilities_.profile.graph_launch_latency_ns;
      const CUresult code = lane.feed.Start(context_->api(), lane.stream, run, starts_ns);
      status = StatusOf(context_->api(), code, "cuGraphLaunch", __FILE__, __LINE__);
    }
    if (!status.ok()) {
      loss_.Record(status);
      return status;
    }
    claimed.store(static_cast<int32_t>(lane.feed.next()), std::memory_order_relaxed);
    lanes_.Publish(lane, part.lane, sequence);
    return absl::OkStatus();
  }

  // From now on the counter is the device's, until a launch in segments zeroes it.
  void NoteWorkersCounter(const core::LaunchPart& part) {
    if (part.counter < 0 || !part.reset_counter) return;
    segments_claimed_[static_cast<size_t>(part.counter)].store(-1, std::memory_order_relaxed);
  }

  // Launches the segments that are due, and reports the launch once it has ended.
  size_t FeedSegments(CudaLane& lane, TimeNs now_ns, absl::Span<core::DeviceCompletion> out,
                      size_t count) {
    SegmentFeed& feed = lane.feed;
    // The launcher publishes the launch after it noted what it launched.
    if (lane.launched.load(std::memory_order_acquire) < feed.run().sequence) return count;
    const bool ended = feed.Advance(context_->api(), lane.stream, now_ns);
    loss_.Record(feed.error());
    loss_.Record(feed.signal_error());
    segments_claimed_[static_cast<size_t>(feed.run().counter)].store(
        static_cast<int32_t>(feed.next()), std::memory_order_relaxed);
    segments_rest_ns_[static_cast<size_t>(feed.run().counter)].store(feed.rest_ns(),
                                                                     std::memory_order_relaxed);
    // Launches before it on the lane are reported first.
    const bool is_next = lane.reported.load(std::memory_order_relaxed) + 1 == feed.run().sequence;
    if (!ended || !is_next || loss_.lost()) return count;
    poller_->CollectSegments(lane, now_ns, out[count]);
    // The order matters: a lane without launches in flight must take the next one.
    const uint64_t sequence = feed.run().sequence;
    feed.Take();
    lane.reported.store(sequence, std::memory_order_release);
    return count + 1;
  }

  // The launch is published whatever the driver answers: its workers will write their record and
  // claim from their counter, so neither may serve another launch.
  CUresult Signal(const CudaLane& lane, const core::LaunchRequest& request) {
    const CUresult answer = launcher_->Signal(lane, request);
    loss_.Record(answer);
    return answer;
  }

  // Waits until every lane is idle, then frees everything, at most kCloseMax together. If the
  // device is hung or lost, keeps its memory until the process ends, because freeing it would wait
  // for the device.
  void Close() {
    const Moment until = std::chrono::steady_clock::now() + kCloseMax;
    if (AwaitIdle(until)) return FreeUntil(std::move(parts_), until);
    const ScopedContext current(*context_);
    lanes_.Leak();
    counters_.Leak();
    claims_reader_.Leak();
    graphs_.Leak();
    functions_.Leak();
    places_.Leak();
    parts_->library.release();  // NOLINT(bugprone-unused-return-value): its memory may be in use
  }

  bool AwaitIdle(Moment until) {
    const ScopedContext current(*context_);
    const ScopedRelaxedCapture relaxed(context_->api());
    const auto idle_now = [this] { return lanes_.Idle() && claims_reader_.Idle(); };
    bool idle = !loss_.lost() && idle_now();
    while (!idle && !loss_.lost() && std::chrono::steady_clock::now() < until) idle = idle_now();
    return idle;
  }

  std::unique_ptr<Parts> parts_;
  Context* const context_ = parts_->context.get();
  const core::SteadyClock clock_;
  core::DeviceCapabilities capabilities_;
  Places& places_ = parts_->places;
  PreparedFunctions& functions_ = parts_->functions;
  PreparedGraphs& graphs_ = parts_->graphs;
  ClaimsReader& claims_reader_ = parts_->claims_reader;
  LibraryCalls& library_ = *parts_->library;
  ClaimCounters& counters_ = parts_->counters;
  DeviceLoss& loss_ = parts_->loss;
  CudaLanes& lanes_ = parts_->lanes;
  std::unique_ptr<BusyTime> busy_time_;
  std::unique_ptr<CompletionPoller> poller_;
  std::unique_ptr<Launcher> launcher_;
  std::atomic<int64_t> longest_segment_ns_{0};  // LimitSegments
  // By claim counter: the segments that were launched since it was zeroed; -1 while workers use it.
  std::array<std::atomic<int32_t>, core::kMaxCounters> segments_claimed_;
  // How long the rest of the next segment takes, whose workers have left; 0: nothing of it is done.
  std::array<std::atomic<int64_t>, core::kMaxCounters> segments_rest_ns_{};
};

// Runs the smallest worker kernel first: it fails if this build has no code for the GPU or the
// driver cannot run it.
absl::Status CheckProbe(int ordinal) {
  ProbeRequest request;
  request.ordinal = ordinal;
  const ProbeResult probe = RunWorkerProbe(request);
  if (probe.error != 0) {
    const bool exhausted = probe.error == CUDA_ERROR_OUT_OF_MEMORY;
    return {exhausted ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
            absl::StrCat("CUDA device ", ordinal, " is not usable: ", probe.step, " answers ",
                         probe.error, " (", ErrorText(probe.error), ") in the worker probe.")};
  }
  if (probe.executed != request.block_tasks || probe.repeated != 0) {
    return absl::InternalError(absl::StrCat(
        "CUDA device ", ordinal, " is not usable: the worker probe executed ", probe.executed,
        " of ", request.block_tasks, " block tasks, and ", probe.repeated, " more than once."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<core::Device>> MakeCudaDevice(int ordinal,
                                                             const core::DeviceProfile& profile) {
  if (absl::Status status = CheckDevice(SystemDriver(), ordinal); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Context>> context = Context::Open(ordinal);
  if (!context.ok()) return context.status();
  {
    // The probe uses the current device; keep the caller's context as it was.
    const ScopedContext current(**context);
    const ScopedRelaxedCapture relaxed((*context)->api());
    if (absl::Status status = CheckProbe(ordinal); !status.ok()) return status;
  }
  auto device = std::make_unique<CudaDevice>(*std::move(context));
  if (absl::Status status = device->Open(profile); !status.ok()) return status;
  return device;
}

int DriverVersion() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

}  // namespace gpushare::cuda
