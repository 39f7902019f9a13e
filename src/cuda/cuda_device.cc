// The CUDA device: implements the seam of src/core/seams/device.h on one GPU. README.md lists its
// parts.
//
// Where in the flow: launch and complete.
// Threads: any thread calls Launch, Evict, FlushLane and NowNs. One thread polls. One thread at a
// time makes places, lanes and kernels.

#include "src/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"
#include "src/core/base/mutex.h"
#include "src/core/checks/launch_check.h"
#include "src/core/seams/graph_cut.h"
#include "src/core/seams/native_code.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/driver/places.h"
#include "src/cuda/driver/probe.h"
#include "src/cuda/graphs/prepared_kernels.h"
#include "src/cuda/lanes/busy_time.h"
#include "src/cuda/lanes/claim_counters.h"
#include "src/cuda/lanes/claims_reader.h"
#include "src/cuda/lanes/completion_poller.h"
#include "src/cuda/lanes/cuda_lane.h"
#include "src/cuda/lanes/lane_check.h"
#include "src/cuda/launcher.h"
#include "src/cuda/library/library_calls.h"

namespace gpushare::cuda {
namespace {

using core::LaneIndex;
using core::PlaceIndex;
using core::TimeNs;

// A launch with `more_follows` waits this long for a mark if its query does not end. A query of a
// mark costs the poller 0.1 us, so marks should be few.
constexpr int64_t kMarkAfterNs = 200'000;
// Extra time for a submitter that continues to launch to set that mark itself.
constexpr int64_t kSubmitterMarksNs = 20'000;
// The period at which the poller asks a busy but silent lane for errors.
constexpr int64_t kErrorCheckNs = 1'000'000;
// The time that the destructor waits for running launches.
constexpr int64_t kCloseNs = 2'000'000'000;
// Each lane's word has a cache line of its own.
constexpr size_t kWordStride = 64;
// Sets of a lane's words. The device may still write to those of a lane that hung, so the lane that
// replaces it gets others. They are allocated at the start: an allocation may wait for the device.
constexpr size_t kWordSets = core::kMaxLanes + core::kMaxLaneReplacements;

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

class CudaDevice final : public core::Device {
 public:
  explicit CudaDevice(std::unique_ptr<Context> context)
      : context_(std::move(context)),
        places_(*context_),
        kernels_(*context_, places_),
        lane_check_(*context_, kWordSets),
        claims_reader_(*context_),
        library_(LibraryCalls::Make(context_->api())) {
    for (std::atomic<int32_t>& claimed : segments_claimed_) claimed.store(-1);
  }

  ~CudaDevice() override { Close(); }

  absl::Status Open(const core::DeviceProfile& given) {
    const ScopedContext current(*context_);
    capabilities_.profile = ProfileOf(*context_, given);
    capabilities_.eviction = true;
    capabilities_.timestamps = true;
    capabilities_.reads_claims = true;
    core::DeviceProfile& profile = capabilities_.profile;
    const absl::Status split = places_.Split(profile.sm_count);
    capabilities_.partitions = split.ok();
    if (split.ok()) profile.sm_granularity = places_.granularity();
    if (split.ok()) profile.sm_groups = places_.groups();
    busy_time_ =
        std::make_unique<BusyTime>(profile.Groups(), profile.sm_granularity, profile.Remainder());
    poller_ = std::make_unique<CompletionPoller>(profile, places_, *busy_time_);
    launcher_ = std::make_unique<Launcher>(*context_, places_, kernels_, *library_, counters_);
    if (absl::Status status = Allocate(); !status.ok()) return status;
    int least = 0;
    int greatest = 0;
    GPUSHARE_CU_RETURN(context_->api(), cuCtxGetStreamPriorityRange(&least, &greatest));
    priorities_ = {least, (least + greatest) / 2, greatest};
    if (absl::Status status = claims_reader_.Open(greatest); !status.ok()) return status;
    return lane_check_.Open();
  }

  TimeNs NowNs() const override { return clock_.NowNs(); }
  const core::DeviceCapabilities& capabilities() const override { return capabilities_; }

  absl::Status DescribeKernel(core::KernelDesc& kernel) override {
    return kernels_.Describe(kernel);
  }

  absl::Status PrepareKernel(const core::KernelDesc& kernel) override {
    if (absl::Status status = kernels_.Prepare(kernel); !status.ok()) return status;
    if (const PreparedKernel* prepared = kernels_.Find(kernel.id); prepared->yields) {
      return counters_.AllocateYieldLists(*context_);
    }
    if (kernel.kind != core::TaskKind::kLibrary) return absl::OkStatus();
    const ScopedContext current(*context_);
    return library_->Prepare(kernel);
  }

  void ReleaseKernel(core::KernelId graph) override { kernels_.Release(graph); }

  core::GraphCut CutOf(const core::KernelDesc& graph) const override {
    return kernels_.CutOf(graph.id);
  }

  absl::Span<const core::SpeedPoint> SpeedsOf(core::KernelId graph) const override {
    return kernels_.SpeedsOf(graph);
  }

  absl::Status PrepareFusedKernel(core::FusedKernelDesc& fused) override {
    return kernels_.PrepareFused(fused);
  }

  bool Confines(core::KernelId kernel, PlaceIndex place) const override {
    return kernels_.Confines(kernel, place);
  }

  absl::StatusOr<PlaceIndex> CreatePlace(const core::PlaceSpec& spec) override {
    if (absl::Status status = core::CheckPlaceSpec(spec, capabilities_.profile); !status.ok()) {
      return status;
    }
    if (!capabilities_.partitions) {
      return absl::UnimplementedError(
          "This GPU or its driver has no green contexts, and so no "
          "partitions.");
    }
    const core::MutexLock lock(&making_);
    absl::StatusOr<PlaceIndex> place = places_.Create(spec);
    if (!place.ok()) return place.status();
    if (absl::Status status = kernels_.AddPlace(*place); !status.ok()) return status;
    return *place;
  }

  absl::StatusOr<LaneIndex> CreateLane(const core::LaneSpec& spec) override {
    const core::MutexLock lock(&making_);
    if (!places_.Has(spec.place)) {
      return absl::InvalidArgumentError(absl::StrCat("A lane asks for place ", spec.place,
                                                     ", and there are ", places_.count(), "."));
    }
    const int32_t index = lane_count_.load(std::memory_order_relaxed);
    if (index == capabilities_.lanes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The device has ", capabilities_.lanes_max, " lanes already."));
    }
    absl::StatusOr<CudaLane*> lane = MakeLane(spec, index, static_cast<size_t>(index));
    if (!lane.ok()) return lane.status();
    lanes_[static_cast<size_t>(index)].store(*lane, std::memory_order_release);
    // release: a thread that sees the new count also sees the lane.
    lane_count_.store(index + 1, std::memory_order_release);
    return index;
  }

  absl::Status ReplaceLane(LaneIndex index, const core::LaneSpec& spec) override {
    const core::MutexLock lock(&making_);
    const CudaLane* const old_lane = Find(index);
    if (old_lane == nullptr || !old_lane->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", index, " was not abandoned, and only such a lane is replaced."));
    }
    // A second attempt uses the words of the first.
    size_t& words = words_of_attempt_[static_cast<size_t>(index)];
    if (words == 0 && word_sets_used_ == kWordSets) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "The device has replaced ", core::kMaxLaneReplacements, " lanes, which is its limit."));
    }
    if (words == 0) words = word_sets_used_++;
    const ScopedRelaxedCapture relaxed(context_->api());
    absl::StatusOr<CudaLane*> lane = MakeLane(spec, index, words);
    if (!lane.ok()) return lane.status();
    words = 0;
    // seq_cst: a caller that raises the lane's epoch after a launch on it read the epoch also finds
    // this lane, and evicts there (lc_gate.h).
    lanes_[static_cast<size_t>(index)].store(*lane, std::memory_order_seq_cst);
    return absl::OkStatus();
  }

  void AbandonLane(LaneIndex index) override {
    if (CudaLane* lane = Find(index); lane != nullptr) {
      lane->abandoned.store(true, std::memory_order_release);
    }
  }

  absl::Status Launch(const core::LaunchRequest& request) override {
    CudaLane* lane = Find(request.parts[0].lane);
    if (lane == nullptr) return NoSuchLane(request.parts[0].lane);
    if (absl::Status status = core::CheckLaunchRequest(request); !status.ok()) return status;
    if (lane->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", request.parts[0].lane, " was given up after it hung."));
    }
    if (lost_.load(std::memory_order_relaxed) != 0) return Lost();
    const ScopedContext current(*context_);
    if (request.form == core::Form::kOpaque && request.parts[0].work.host_function != nullptr) {
      return CallAndLaunch(*lane, request);
    }
    if (request.form == core::Form::kFused) return LaunchFused(*lane, request);
    const LaneLock lock(*lane);
    return LaunchLocked(*lane, request);
  }

  void FlushLane(LaneIndex index) override {
    if (CudaLane* lane = Find(index); lane != nullptr) {
      RequestMark(*lane, lane->launched.load(std::memory_order_acquire));
    }
  }

  std::optional<int64_t> ReadClaims(int32_t counter) override {
    if (lost_.load(std::memory_order_relaxed) != 0) return std::nullopt;
    const int32_t segments =
        segments_claimed_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
    if (segments >= 0) return segments;
    const ScopedContext current(*context_);
    const ScopedRelaxedCapture relaxed(context_->api());
    const uint32_t* const address = counters_.At(counter, counters_.SideFor(counter, false));
    return claims_reader_.Read(counter, address);
  }

  absl::Status Evict(LaneIndex index, uint64_t epoch, int32_t workers_to_keep) override {
    const CudaLane* lane = Find(index);
    if (lane == nullptr) return NoSuchLane(index);
    if (lane->words.host_eviction_word == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat("Lane ", index, " has no eviction word."));
    }
    if (workers_to_keep < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("An eviction keeps ", workers_to_keep, " workers, and the least is 0."));
    }
    // The device compares the low 32 bits of epochs by their signed difference.
    lane->words.host_eviction_word->store(epoch << 32 | static_cast<uint32_t>(workers_to_keep),
                                          std::memory_order_release);
    return absl::OkStatus();
  }

  void* LaneStream(LaneIndex index) override {
    const CudaLane* lane = Find(index);
    return lane == nullptr ? nullptr : lane->stream;
  }

  size_t PollCompletions(absl::Span<core::DeviceCompletion> out) override {
    size_t count = 0;
    const bool lost = lost_.load(std::memory_order_relaxed) != 0;
    uint64_t busy = busy_lanes_.load(std::memory_order_acquire);
    if (busy != 0) {
      const TimeNs now_ns = clock_.NowNs();
      const ScopedContext current(*context_);
      const ScopedRelaxedCapture relaxed(context_->api());
      for (; busy != 0 && count < out.size(); busy &= busy - 1) {
        const int index = std::countr_zero(busy);
        CudaLane& lane = *Find(index);
        if (lost) {
          count = CompletionPoller::CollectLost(lane, lost_.load(), out, count);
          lane.feed.Take();
        } else if (!lane.abandoned.load(std::memory_order_acquire)) {
          SetWantedMark(lane);
          const size_t before = count;
          count = poller_->Collect(context_->api(), lane, now_ns, out, count);
          if (lane.feed.busy() && count < out.size()) {
            count = FeedSegments(lane, now_ns, out, count);
          }
          if (count == before) CheckSilentLane(lane, now_ns);
        }
        StopPollingIfEmpty(lane, index);
      }
    }
    poller_->SortByEnd(out.first(count));
    return count;
  }

  TimeNs NextEventNs() const override { return core::kNever; }
  void AdvanceTo(TimeNs /*time*/) override {}
  TimeNs NextLookNs() override {
    TimeNs next_ns = core::kNever;
    if (lost_.load(std::memory_order_relaxed) != 0) return next_ns;
    const TimeNs now_ns = clock_.NowNs();
    for (uint64_t busy = busy_lanes_.load(std::memory_order_acquire); busy != 0; busy &= busy - 1) {
      const CudaLane& lane = *Find(std::countr_zero(busy));
      if (!lane.feed.busy() || lane.abandoned.load(std::memory_order_acquire)) continue;
      // Its launcher has not published it yet, and wakes the thread that polls once it has.
      if (lane.launched.load(std::memory_order_acquire) < lane.feed.run().sequence) continue;
      next_ns = std::min(next_ns, lane.feed.NextLookNs(now_ns));
    }
    return next_ns;
  }
  int64_t BusySmNs() const override { return busy_time_->Total(); }

 private:
  static absl::Status NoSuchLane(LaneIndex lane) {
    return absl::InvalidArgumentError(absl::StrCat("The device has no lane ", lane, "."));
  }

  absl::Status Lost() const {
    const int code = lost_.load(std::memory_order_relaxed);
    return core::WithNativeCode(
        core::StatusOf(
            absl::StatusCode::kDataLoss,
            [code] { return absl::StrCat("The CUDA device is lost after error ", code, "."); }),
        code);
  }

  // Records the first sticky error, which loses the device.
  void RecordLoss(const absl::Status& status) {
    if (!absl::IsDataLoss(status)) return;
    const int code = core::NativeCodeOf(status);
    int expected = 0;
    lost_.compare_exchange_strong(expected,
                                  code != 0 ? code : static_cast<int>(CUDA_ERROR_UNKNOWN));
  }

  CudaLane* Find(LaneIndex index) const {
    if (index < 0 || index >= lane_count_.load(std::memory_order_acquire)) return nullptr;
    return lanes_[static_cast<size_t>(index)].load(std::memory_order_seq_cst);
  }

  // A new lane with the words of set `words`, of which nobody knows yet.
  absl::StatusOr<CudaLane*> MakeLane(const core::LaneSpec& spec, LaneIndex index, size_t words)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_) {
    auto lane = std::make_unique<CudaLane>();
    lane->spec = spec;
    lane->words = WordsOf(words, spec.evictable);
    const ScopedContext current(*context_);
    // An earlier attempt to make this lane may have left records of its probes. Continue its
    // sequence numbers, so that no launch mistakes such a record for its own.
    uint64_t& sequence = first_sequence_[words];
    for (std::atomic<uint64_t>* number : {&lane->launched, &lane->reported}) {
      number->store(sequence, std::memory_order_relaxed);
    }
    absl::Status status = OpenStream(*lane, index, words);
    sequence = lane->launched.load(std::memory_order_relaxed);
    if (!status.ok()) return status;
    status = lane->marks.Open(context_->api(), lane->stream, sequence,
                              spec.evictable ? LaneMarks::kMarksOfWorkers : LaneMarks::kMarksMax);
    if (status.ok()) status = lane->feed.Open(context_->api());
    if (status.ok()) {
      status = library_->AddLane(index, lane->stream, spec.place, places_.place(spec.place).sms);
    }
    if (!status.ok()) {
      lane->feed.Close(context_->api());
      lane->marks.Close(context_->api());
      context_->api().cuStreamDestroy(lane->stream);
      return status;
    }
    owned_lanes_.push_back(std::move(lane));
    return owned_lanes_.back().get();
  }

  absl::Status Allocate() {
    auto records =
        MappedMemory::Make(*context_, sizeof(gpushare_worker_completion) * kLaneRing * kWordSets);
    if (!records.ok()) return records.status();
    auto host_words = MappedMemory::Make(*context_, kWordSets * kWordStride);
    if (!host_words.ok()) return host_words.status();
    auto words = DeviceMemory::Make(*context_, kWordSets * kWordStride);
    if (!words.ok()) return words.status();
    auto scratch =
        DeviceMemory::Make(*context_, sizeof(gpushare_worker_scratch) * kLaneRing * kWordSets);
    if (!scratch.ok()) return scratch.status();
    records_ = *std::move(records);
    host_eviction_words_ = *std::move(host_words);
    eviction_words_ = *std::move(words);
    scratch_ = *std::move(scratch);
    return counters_.Allocate(*context_);
  }

  // Makes the lane's stream. If evictions do not work on it, makes a second one, and then fails: an
  // evictable lane must be evictable.
  absl::Status OpenStream(CudaLane& lane, LaneIndex index, size_t words) {
    constexpr int kAttempts = 2;
    absl::Status status;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      absl::StatusOr<CUstream> stream =
          places_.MakeStream(lane.spec.place, priorities_[static_cast<size_t>(lane.spec.priority)]);
      if (!stream.ok()) return stream.status();
      lane.stream = *stream;
      if (!lane.spec.evictable) return absl::OkStatus();
      status = lane_check_.Run(lane, index, words);
      if (status.ok()) return status;
      RecordLoss(status);
      context_->api().cuStreamDestroy(lane.stream);
      if (!absl::IsDeadlineExceeded(status)) return status;
    }
    return status;
  }

  LaneWords WordsOf(size_t set, bool evictable) const {
    LaneWords words;
    // A lane that is not evictable has no eviction word, and its workers read none.
    if (evictable) {
      const size_t word = set * kWordStride / sizeof(uint64_t);
      words.host_eviction_word = host_eviction_words_.Host<std::atomic<uint64_t>>(word);
      words.host_eviction_word_on_device = host_eviction_words_.Device<const uint64_t>(word);
      words.eviction_word = eviction_words_.At<uint64_t>(word);
    }
    words.records = records_.Host<gpushare_worker_completion>(set * kLaneRing);
    words.records_on_device = records_.Device<gpushare_worker_completion>(set * kLaneRing);
    words.scratch = scratch_.At<gpushare_worker_scratch>(set * kLaneRing);
    return words;
  }

  // Spins before it sleeps. The holder of a lane is inside one driver call of about 1 us, and a
  // sleep and a wake-up cost several.
  static void LockLane(CudaLane& lane) ABSL_EXCLUSIVE_LOCK_FUNCTION(lane.mutex) {
    constexpr int kLooks = 64;  // each with a pause of 20 to 50 ns
    for (int look = 0; look < kLooks; ++look) {
      if (lane.mutex.TryLock()) return;
      Pause();
    }
    lane.mutex.Lock();
  }

  // Unlocks on an exception too: a refusal without memory for its message.
  class ABSL_SCOPED_LOCKABLE LaneLock {
   public:
    explicit LaneLock(CudaLane& lane) ABSL_EXCLUSIVE_LOCK_FUNCTION(lane.mutex) : lane_(lane) {
      LockLane(lane);
    }
    ~LaneLock() ABSL_UNLOCK_FUNCTION() { lane_.mutex.Unlock(); }
    LaneLock(const LaneLock&) = delete;
    LaneLock& operator=(const LaneLock&) = delete;

   private:
    CudaLane& lane_;
  };

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  static absl::Status RingFull(LaneIndex lane) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Lane ", lane, " has ", kLaneRing, " launches that were not reported."));
  }

  static bool HasRoom(const CudaLane& lane, uint64_t sequence) {
    return sequence - lane.reported.load(std::memory_order_acquire) <= kLaneRing;
  }

  // Hands the launch to the poller. seq_cst orders the store before the load of the busy bit;
  // StopPollingIfEmpty clears that bit and then reads `launched`.
  void Publish(CudaLane& lane, LaneIndex index, uint64_t sequence) {
    lane.launched.store(sequence, std::memory_order_seq_cst);
    const uint64_t bit = uint64_t{1} << index;
    if ((busy_lanes_.load(std::memory_order_seq_cst) & bit) == 0) {
      busy_lanes_.fetch_or(bit, std::memory_order_seq_cst);
    }
  }

  // Launches both parts of a fused launch; each has a record in its own lane's ring. It locks both
  // lanes, the lower index first, so that ring order and stream order agree.
  absl::Status LaunchFused(CudaLane& lane,
                           const core::LaunchRequest& request) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    CudaLane* const partner = Find(request.parts[1].lane);
    if (partner == nullptr) return NoSuchLane(request.parts[1].lane);
    if (partner->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("Lane ", request.parts[1].lane, " was given up after it hung."));
    }
    const bool one_lane = partner == &lane;
    const bool partner_first = request.parts[1].lane < request.parts[0].lane;
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
    if (lane.feed.busy()) return HasSegments(request.parts[0].lane);
    if (partner.feed.busy()) return HasSegments(request.parts[1].lane);
    const bool one_lane = &partner == &lane;
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
    const uint64_t second =
        one_lane ? sequence + 1 : partner.launched.load(std::memory_order_relaxed) + 1;
    if (!HasRoom(lane, sequence)) return RingFull(request.parts[0].lane);
    if (!HasRoom(partner, second)) return RingFull(request.parts[1].lane);
    for (const core::LaunchPart& part : request.parts) NoteWorkersCounter(part);
    // Mark the lane now. The poller's next mark would be behind both parts, and earlier launches
    // would seem to end with the longer one.
    if (lane.reported.load(std::memory_order_relaxed) + 1 < sequence) MarkLocked(lane);
    const TimeNs now_ns = clock_.NowNs();
    const auto enter = [now_ns](InFlightLaunch& entry, const core::LaunchPart& part) {
      entry = InFlightLaunch();
      entry.launch = part.launch;
      entry.launched_ns = now_ns;
      entry.block_tasks = part.block_count;
      entry.workers = entry.fused = true;
    };
    enter(lane.At(sequence), request.parts[0]);
    enter(partner.At(second), request.parts[1]);
    partner.At(second).stream_lane = &lane;
    absl::Status status = launcher_->EnqueueFused(lane, sequence, partner, second, request);
    if (!status.ok()) {
      RecordLoss(status);
      return status;
    }
    lane.At(sequence).signal_error = partner.At(second).signal_error = Signal(lane, request);
    Publish(lane, request.parts[0].lane, one_lane ? second : sequence);
    if (!one_lane) Publish(partner, request.parts[1].lane, second);
    return absl::OkStatus();
  }

  // Whether the lane takes a launch now. Its mutex is held.
  static absl::Status CheckTakes(const CudaLane& lane, LaneIndex index) {
    if (lane.feed.busy()) return HasSegments(index);
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
    return HasRoom(lane, sequence) ? absl::OkStatus() : RingFull(index);
  }

  // Calls the caller's function without a lock, once the lane is known to take the launch. Until it
  // is launched the lane starts no segments, and its ring is as large as the scheduler's table of
  // launches, so the call is never for nothing. The mark that LaunchLocked wants comes behind the
  // work that the function enqueues.
  absl::Status CallAndLaunch(CudaLane& lane, const core::LaunchRequest& request) {
    std::optional<CudaLane::Callback> callback;
    {
      const LaneLock lock(lane);
      absl::Status status = CheckTakes(lane, request.parts[0].lane);
      if (!status.ok()) return status;
      MarkQueryBefore(lane);
      callback.emplace(lane);
    }
    if (absl::Status status = launcher_->WaitForEvents(lane, request); !status.ok()) {
      RecordLoss(status);
      return status;
    }
    request.parts[0].work.host_function(lane.stream, request.parts[0].work.host_user);
    const LaneLock lock(lane);
    return LaunchLocked(lane, request);
  }

  absl::Status LaunchLocked(CudaLane& lane, const core::LaunchRequest& request) {
    absl::Status takes = CheckTakes(lane, request.parts[0].lane);
    if (!takes.ok()) return takes;
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed) + 1;
    InFlightLaunch& entry = lane.At(sequence);
    entry.launch = request.parts[0].launch;
    entry.launched_ns = clock_.NowNs();
    entry.block_tasks = request.parts[0].block_count;
    entry.workers = request.form == core::Form::kWorkers;
    entry.segments = request.form == core::Form::kSegments;
    entry.fused = entry.collected = false;
    entry.stream_lane = nullptr;
    entry.signal_error = CUDA_SUCCESS;
    if (entry.segments) return LaunchSegments(lane, sequence, request);
    NoteWorkersCounter(request.parts[0]);
    MarkQueryBefore(lane);
    absl::Status status = launcher_->Enqueue(lane, sequence, request);
    if (!status.ok()) {
      RecordLoss(status);
      return status;
    }
    entry.signal_error = Signal(lane, request);
    const bool wants_mark = !entry.workers && !request.more_follows;
    const TimeNs launched_ns = entry.launched_ns;
    Publish(lane, request.parts[0].lane, sequence);
    if (wants_mark) RequestMark(lane, sequence);
    // In a long query the submitter sets a mark that is due. Otherwise the poller would lock the
    // lane for it.
    if (request.more_follows) MarkIfDue(lane, launched_ns);
    return absl::OkStatus();
  }

  static absl::Status HasSegments(LaneIndex lane) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", lane, " has a launch in segments and takes no other."));
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
        kernels_.SegmentsFor(part.work.kernel->id, lane.spec.place);
    if (segments.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Graph '", part.work.kernel->name, "' has no segments on this device."));
    }
    std::atomic<int32_t>& claimed = segments_claimed_[static_cast<size_t>(part.counter)];
    if (part.reset_counter) claimed.store(0, std::memory_order_relaxed);
    // The next mark would be behind the segments, and earlier launches would seem to end with them.
    if (lane.reported.load(std::memory_order_relaxed) + 1 < sequence) MarkLocked(lane);
    absl::Status status = launcher_->WaitForEvents(lane, request);
    if (status.ok()) {
      SegmentRun run;
      run.segments = segments;
      run.durations_ns = kernels_.SegmentTimes(part.work.kernel->id);
      run.segment_ns = core::SegmentNsOf(*part.work.kernel);
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
      RecordLoss(status);
      return status;
    }
    claimed.store(static_cast<int32_t>(lane.feed.next()), std::memory_order_relaxed);
    Publish(lane, part.lane, sequence);
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
    for (const CUresult error : {feed.error(), feed.signal_error()}) {
      int none = 0;
      if (IsSticky(error)) lost_.compare_exchange_strong(none, static_cast<int>(error));
    }
    segments_claimed_[static_cast<size_t>(feed.run().counter)].store(
        static_cast<int32_t>(feed.next()), std::memory_order_relaxed);
    // Launches before it on the lane are reported first.
    const bool is_next = lane.reported.load(std::memory_order_relaxed) + 1 == feed.run().sequence;
    if (!ended || !is_next || lost_.load(std::memory_order_relaxed) != 0) return count;
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
    int expected = 0;
    if (IsSticky(answer)) lost_.compare_exchange_strong(expected, static_cast<int>(answer));
    return answer;
  }

  // Asks the poller to set a mark, so that the submitter does not pay for it.
  static void RequestMark(CudaLane& lane, uint64_t sequence) {
    uint64_t wanted = lane.mark_wanted.load(std::memory_order_relaxed);
    while (wanted < sequence &&
           !lane.mark_wanted.compare_exchange_weak(wanted, sequence, std::memory_order_release)) {
    }
  }

  // Sets a mark behind everything on the lane. If that fails, the poller tries later.
  void MarkLocked(CudaLane& lane) {
    const uint64_t sequence = lane.launched.load(std::memory_order_relaxed);
    if (lane.marks.set() >= sequence) return;
    RecordLoss(lane.marks.Set(context_->api(), lane.stream, sequence));
    if (lane.marks.set() < sequence) RequestMark(lane, sequence);
  }

  // Sets the mark that the poller has not come to. Behind the next query's launch it would report
  // this query as late as that one: of queries of 1.6 ms at half load, one in 220 was.
  void MarkQueryBefore(CudaLane& lane) {
    if (lane.spec.priority != core::LanePriority::kHigh) return;
    if (lane.marks.set() < lane.mark_wanted.load(std::memory_order_relaxed)) MarkLocked(lane);
  }

  void MarkIfDue(CudaLane& lane, TimeNs now_ns) {
    const uint64_t oldest = lane.marks.set() + 1;
    if (now_ns - lane.At(oldest).launched_ns > kMarkAfterNs) MarkLocked(lane);
  }

  void SetWantedMark(CudaLane& lane) {
    const uint64_t wanted = lane.mark_wanted.load(std::memory_order_acquire);
    if (lane.marks.set() >= wanted) return;
    // A launcher holds the lane; it will want a later mark anyway.
    if (!lane.mutex.TryLock()) return;
    MarkLocked(lane);
    lane.mutex.Unlock();
  }

  // Replaces a lost mark by a new one behind everything on the lane. The new one reports the same
  // launches.
  void ReplaceMark(CudaLane& lane) {
    if (!lane.mutex.TryLock()) return;
    const absl::Status status = lane.marks.Set(context_->api(), lane.stream, lane.launched.load());
    lane.mutex.Unlock();
    RecordLoss(status);
    if (status.ok()) lane.marks.Replaced();
  }

  // Checks a lane without completions: sets a missing mark, and asks the stream for errors.
  void CheckSilentLane(CudaLane& lane, TimeNs now_ns) {
    const uint64_t oldest = lane.reported.load(std::memory_order_relaxed) + 1;
    if (oldest > lane.launched.load(std::memory_order_acquire)) return;
    if (lane.marks.lost()) ReplaceMark(lane);
    const InFlightLaunch& launch = lane.At(oldest);
    if (!launch.workers && !launch.segments &&
        now_ns - launch.launched_ns > kMarkAfterNs + kSubmitterMarksNs) {
      RequestMark(lane, oldest);
    }
    if (now_ns - std::max(launch.launched_ns, lane.checked_ns) < kErrorCheckNs) return;
    lane.checked_ns = now_ns;
    const CUresult code = context_->api().cuStreamQuery(lane.stream);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_NOT_READY || !IsSticky(code)) return;
    int expected = 0;
    lost_.compare_exchange_strong(expected, static_cast<int>(code));
  }

  // Stops polling an empty lane. A launch at the same moment sets the lane's bit again.
  void StopPollingIfEmpty(CudaLane& lane, int index) {
    const auto empty = [&lane] {
      return lane.reported.load(std::memory_order_relaxed) ==
             lane.launched.load(std::memory_order_seq_cst);
    };
    if (!empty() && !lane.abandoned.load(std::memory_order_relaxed)) return;
    busy_lanes_.fetch_and(~(uint64_t{1} << index), std::memory_order_seq_cst);
    if (!empty() && !lane.abandoned.load(std::memory_order_relaxed)) {
      busy_lanes_.fetch_or(uint64_t{1} << index, std::memory_order_release);
    }
  }

  bool Idle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_) {
    const auto idle = [this](const std::unique_ptr<CudaLane>& lane) {
      return context_->api().cuStreamQuery(lane->stream) != CUDA_ERROR_NOT_READY;
    };
    return std::all_of(owned_lanes_.begin(), owned_lanes_.end(), idle) && claims_reader_.Idle();
  }

  // Waits until every lane is idle, at most kCloseNs. If the device is hung or lost, keeps its
  // memory until the process ends, because freeing it would wait for the device.
  void Close() {
    const core::MutexLock lock(&making_);
    const ScopedContext current(*context_);
    const TimeNs deadline_ns = clock_.NowNs() + kCloseNs;
    bool idle = lost_.load() == 0 && Idle();
    while (!idle && lost_.load() == 0 && clock_.NowNs() < deadline_ns) idle = Idle();
    if (!idle) {
      for (MappedMemory* memory : {&records_, &host_eviction_words_}) memory->Leak();
      for (DeviceMemory* memory : {&eviction_words_, &scratch_}) memory->Leak();
      counters_.Leak();
      lane_check_.Leak();
      claims_reader_.Leak();
      kernels_.Leak();
      places_.Leak();
      library_.release();  // NOLINT(bugprone-unused-return-value): its memory may be in use
      return;
    }
    for (const std::unique_ptr<CudaLane>& lane : owned_lanes_) {
      lane->feed.Close(context_->api());
      lane->marks.Close(context_->api());
      context_->api().cuStreamDestroy(lane->stream);
    }
    claims_reader_.Close();
  }

  const std::unique_ptr<Context> context_;
  const core::SteadyClock clock_;
  core::DeviceCapabilities capabilities_;
  Places places_;
  PreparedKernels kernels_;
  LaneCheck lane_check_;
  ClaimsReader claims_reader_;
  std::unique_ptr<LibraryCalls> library_;
  ClaimCounters counters_;
  MappedMemory records_;
  MappedMemory host_eviction_words_;
  DeviceMemory eviction_words_;
  DeviceMemory scratch_;
  std::array<int, 3> priorities_{};  // indexed by LanePriority
  std::unique_ptr<BusyTime> busy_time_;
  std::unique_ptr<CompletionPoller> poller_;
  std::unique_ptr<Launcher> launcher_;
  core::Mutex making_;  // held while a place or a lane is made
  // Lanes that hung stay until the end: a launch or the poller may hold one.
  std::vector<std::unique_ptr<CudaLane>> owned_lanes_ ABSL_GUARDED_BY(making_);
  std::array<std::atomic<CudaLane*>, core::kMaxLanes> lanes_{};
  std::atomic<int32_t> lane_count_{0};
  // By set of words; survives a failed CreateLane or ReplaceLane.
  std::array<uint64_t, kWordSets> first_sequence_{};
  size_t word_sets_used_ ABSL_GUARDED_BY(making_) = core::kMaxLanes;
  // By lane: the set that a failed ReplaceLane took, or 0.
  std::array<size_t, core::kMaxLanes> words_of_attempt_ ABSL_GUARDED_BY(making_) = {};
  // By counter: the segments that were launched since it was zeroed; -1: workers use it.
  std::array<std::atomic<int32_t>, core::kMaxCounters> segments_claimed_;
  std::atomic<uint64_t> busy_lanes_{0};
  std::atomic<int> lost_{0};  // the error code that lost the device, or 0
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
    if (absl::Status status = CheckProbe(ordinal); !status.ok()) return status;
  }
  auto device = std::make_unique<CudaDevice>(*std::move(context));
  if (absl::Status status = device->Open(profile); !status.ok()) return status;
  return device;
}

}  // namespace gpushare::cuda
