// Makes lanes, publishes their launches and sets their marks. See cuda_lanes.h.

#include "src/cuda/lanes/cuda_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/lanes/lane_lock.h"

namespace gpushare::cuda {
namespace {

using core::LaneIndex;
using core::TimeNs;

// A launch with `more_follows` waits this long for a mark if its query does not end. A query of a
// mark costs the poller 0.1 us, so marks should be few.
constexpr int64_t kMarkAfterNs = 200'000;
// Extra time for a submitter that continues to launch to set that mark itself.
constexpr int64_t kSubmitterMarksNs = 20'000;
// The period at which the poller asks a busy but silent lane for errors.
constexpr int64_t kErrorCheckNs = 1'000'000;
// Each lane's word has a cache line of its own.
constexpr size_t kWordStride = 64;

}  // namespace

absl::Status CudaLanes::Open(int least, int greatest) {
  priorities_ = {least, (least + greatest) / 2, greatest};
  if (absl::Status status = Allocate(); !status.ok()) return status;
  return check_.Open();
}

absl::Status CudaLanes::Allocate() {
  auto records =
      MappedMemory::Make(context_, sizeof(gpushare_worker_completion) * kLaneRing * kWordSets);
  if (!records.ok()) return records.status();
  auto host_words = MappedMemory::Make(context_, kWordSets * kWordStride);
  if (!host_words.ok()) return host_words.status();
  auto words = DeviceMemory::Make(context_, kWordSets * kWordStride);
  if (!words.ok()) return words.status();
  auto scratch =
      DeviceMemory::Make(context_, sizeof(gpushare_worker_scratch) * kLaneRing * kWordSets);
  if (!scratch.ok()) return scratch.status();
  records_ = *std::move(records);
  host_eviction_words_ = *std::move(host_words);
  eviction_words_ = *std::move(words);
  scratch_ = *std::move(scratch);
  return absl::OkStatus();
}

absl::StatusOr<LaneIndex> CudaLanes::Create(const core::LaneSpec& spec) {
  const core::MutexLock lock(&making_);
  if (!places_.Has(spec.place)) {
    return absl::InvalidArgumentError(absl::StrCat("A lane asks for place ", spec.place,
                                                   ", and the device has made no such place."));
  }
  const int32_t count = count_.load(std::memory_order_relaxed);
  LaneIndex index = 0;
  while (index < count && Find(index) != nullptr) ++index;
  if (index == core::kMaxLanes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The device has ", core::kMaxLanes, " lanes already."));
  }
  absl::StatusOr<CudaLane*> lane = Make(spec, index, static_cast<size_t>(index));
  if (!lane.ok()) return lane.status();
  lanes_[static_cast<size_t>(index)].store(*lane, std::memory_order_release);
  // release: a thread that sees the new count also sees the lane.
  count_.store(std::max(count, index + 1), std::memory_order_release);
  return index;
}

absl::Status CudaLanes::CheckEnds(core::PlaceIndex place) const {
  for (const std::unique_ptr<CudaLane>& lane : owned_) {
    if (lane->spec.place != place) continue;
    if (lane->abandoned.load(std::memory_order_acquire)) {
      return absl::FailedPreconditionError(
          absl::StrCat("A lane of place ", place, " hung, and its work may never end."));
    }
    bool polled = false;
    for (size_t index = 0; index < lanes_.size(); ++index) {
      polled = polled || (lanes_[index].load() == lane.get() && (Busy() >> index & 1) != 0);
    }
    const bool reported = lane->reported.load(std::memory_order_acquire) ==
                          lane->launched.load(std::memory_order_acquire);
    if (polled || !reported || lane->callbacks.load() > 0 ||
        context_.api().cuStreamQuery(lane->stream) == CUDA_ERROR_NOT_READY) {
      return absl::FailedPreconditionError(
          absl::StrCat("A lane of place ", place, " has work that was not reported."));
    }
  }
  return absl::OkStatus();
}

absl::Status CudaLanes::RemoveFrom(core::PlaceIndex place) {
  const core::MutexLock lock(&making_);
  if (absl::Status status = CheckEnds(place); !status.ok()) return status;
  for (size_t index = 0; index < lanes_.size(); ++index) {
    CudaLane* const lane = lanes_[index].load();
    if (lane == nullptr || lane->spec.place != place) continue;
    lanes_[index].store(nullptr, std::memory_order_seq_cst);
    library_.RemoveLane(static_cast<LaneIndex>(index));
    // The next lane with these words takes no record of this one for its own.
    first_sequence_[index] = lane->launched.load(std::memory_order_relaxed);
    CloseLane(*lane);
    owned_.erase(std::find_if(owned_.begin(), owned_.end(),
                              [lane](const auto& owned) { return owned.get() == lane; }));
  }
  return absl::OkStatus();
}

absl::Status CudaLanes::Replace(LaneIndex index, const core::LaneSpec& spec) {
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
  const ScopedRelaxedCapture relaxed(context_.api());
  absl::StatusOr<CudaLane*> lane = Make(spec, index, words);
  if (!lane.ok()) return lane.status();
  words = 0;
  // seq_cst: a caller that raises the lane's epoch after a launch on it read the epoch also finds
  // this lane, and evicts there (lc_gate.h).
  lanes_[static_cast<size_t>(index)].store(*lane, std::memory_order_seq_cst);
  return absl::OkStatus();
}

void CudaLanes::Abandon(LaneIndex index) {
  if (CudaLane* lane = Find(index); lane != nullptr) {
    lane->abandoned.store(true, std::memory_order_release);
  }
}

absl::StatusOr<CudaLane*> CudaLanes::Make(const core::LaneSpec& spec, LaneIndex index,
                                          size_t words) {
  auto lane = std::make_unique<CudaLane>();
  lane->spec = spec;
  lane->words = WordsOf(words, spec.evictable);
  const ScopedContext current(context_);
  // An earlier attempt to make this lane may have left records of its probes. Continue its sequence
  // numbers, so that no launch mistakes such a record for its own.
  uint64_t& sequence = first_sequence_[words];
  for (std::atomic<uint64_t>* number : {&lane->launched, &lane->reported}) {
    number->store(sequence, std::memory_order_relaxed);
  }
  absl::Status status = OpenStream(*lane, index, words);
  sequence = lane->launched.load(std::memory_order_relaxed);
  if (!status.ok()) return status;
  status = lane->marks.Open(context_.api(), lane->stream, sequence,
                            spec.evictable ? LaneMarks::kMarksOfWorkers : LaneMarks::kMarksMax);
  if (status.ok()) status = lane->feed.Open(context_.api());
  if (status.ok()) {
    status = GPUSHARE_CU(context_.api(), cuEventCreate(&lane->order, CU_EVENT_DISABLE_TIMING));
  }
  if (status.ok()) {
    status = library_.AddLane(index, lane->stream, spec.place, places_.place(spec.place).sms);
  }
  if (!status.ok()) {
    CloseLane(*lane);
    return status;
  }
  owned_.push_back(std::move(lane));
  return owned_.back().get();
}

// If evictions do not work on the stream, makes a second one, and then fails: an evictable lane
// must be evictable.
absl::Status CudaLanes::OpenStream(CudaLane& lane, LaneIndex index, size_t words) {
  constexpr int kAttempts = 2;
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    absl::StatusOr<CUstream> stream =
        places_.MakeStream(lane.spec.place, priorities_[static_cast<size_t>(lane.spec.priority)]);
    if (!stream.ok()) return stream.status();
    lane.stream = *stream;
    if (!lane.spec.evictable) return absl::OkStatus();
    status = check_.Run(lane, index, words);
    if (status.ok()) return status;
    loss_.Record(status);
    context_.api().cuStreamDestroy(lane.stream);
    if (!absl::IsDeadlineExceeded(status)) return status;
  }
  return status;
}

void CudaLanes::CloseLane(CudaLane& lane) const {
  lane.feed.Close(context_.api());
  lane.marks.Close(context_.api());
  if (lane.order != nullptr) context_.api().cuEventDestroy(lane.order);
  context_.api().cuStreamDestroy(lane.stream);
}

LaneWords CudaLanes::WordsOf(size_t set, bool evictable) const {
  LaneWords words;
  const size_t word = set * kWordStride / sizeof(uint64_t);
  // The host feeds segments and reads it. Workers of a lane that is not evictable read none.
  words.host_eviction_word = host_eviction_words_.Host<std::atomic<uint64_t>>(word);
  if (evictable) {
    words.host_eviction_word_on_device = host_eviction_words_.Device<const uint64_t>(word);
    words.eviction_word = eviction_words_.At<uint64_t>(word);
  }
  words.records = records_.Host<gpushare_worker_completion>(set * kLaneRing);
  words.records_on_device = records_.Device<gpushare_worker_completion>(set * kLaneRing);
  words.scratch = scratch_.At<gpushare_worker_scratch>(set * kLaneRing);
  return words;
}

CudaLane* CudaLanes::Find(LaneIndex index) const {
  if (index < 0 || index >= count_.load(std::memory_order_acquire)) return nullptr;
  return lanes_[static_cast<size_t>(index)].load(std::memory_order_seq_cst);
}

absl::Status CudaLanes::NoSuchLane(LaneIndex index) {
  return absl::InvalidArgumentError(absl::StrCat("The device has no lane ", index, "."));
}

absl::Status CudaLanes::Evict(LaneIndex index, uint64_t epoch, int32_t workers_to_keep) const {
  const CudaLane* lane = Find(index);
  if (lane == nullptr) return NoSuchLane(index);
  if (workers_to_keep < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("An eviction keeps ", workers_to_keep, " workers, and the least is 0."));
  }
  // The device compares the low 32 bits of epochs by their signed difference.
  lane->words.host_eviction_word->store(epoch << 32 | static_cast<uint32_t>(workers_to_keep),
                                        std::memory_order_release);
  return absl::OkStatus();
}

absl::Status CudaLanes::CheckNotAbandoned(const CudaLane& lane, LaneIndex index) {
  if (!lane.abandoned.load(std::memory_order_acquire)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("Lane ", index, " was given up after it hung."));
}

absl::Status CudaLanes::CheckTakes(const CudaLane& lane, LaneIndex index, uint64_t sequence) {
  if (lane.feed.busy()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Lane ", index, " has a launch in segments and takes no other."));
  }
  if (sequence - lane.reported.load(std::memory_order_acquire) <= kLaneRing) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("Lane ", index, " has ", kLaneRing, " launches that were not reported."));
}

absl::Status CudaLanes::OrderAfter(const CudaLane& lane, LaneIndex before) const {
  CudaLane* const other = Find(before);
  if (other == nullptr) return NoSuchLane(before);
  // The launches of a lane that hung never end.
  if (other == &lane || other->abandoned.load(std::memory_order_acquire)) return absl::OkStatus();
  {
    // Other threads may record the event again: then the lane waits for their launches too.
    const LaneLock lock(*other);
    GPUSHARE_CU_RETURN(context_.api(), cuEventRecord(other->order, other->stream));
  }
  return GPUSHARE_CU(context_.api(), cuStreamWaitEvent(lane.stream, other->order, 0));
}

void CudaLanes::Publish(CudaLane& lane, LaneIndex index, uint64_t sequence) {
  // seq_cst orders this store before the load of the busy bit. StopIfEmpty clears that bit and then
  // reads `launched`.
  lane.launched.store(sequence, std::memory_order_seq_cst);
  const uint64_t bit = uint64_t{1} << index;
  if ((busy_.load(std::memory_order_seq_cst) & bit) == 0) {
    busy_.fetch_or(bit, std::memory_order_seq_cst);
  }
}

void CudaLanes::RequestMark(CudaLane& lane, uint64_t sequence) {
  uint64_t wanted = lane.mark_wanted.load(std::memory_order_relaxed);
  while (wanted < sequence &&
         !lane.mark_wanted.compare_exchange_weak(wanted, sequence, std::memory_order_release)) {
  }
}

void CudaLanes::MarkLocked(CudaLane& lane) {
  const uint64_t sequence = lane.launched.load(std::memory_order_relaxed);
  if (lane.marks.set() >= sequence) return;
  loss_.Record(lane.marks.Set(context_.api(), lane.stream, sequence));
  if (lane.marks.set() < sequence) RequestMark(lane, sequence);
}

void CudaLanes::MarkBefore(CudaLane& lane, uint64_t sequence) {
  if (lane.reported.load(std::memory_order_relaxed) + 1 < sequence) MarkLocked(lane);
}

void CudaLanes::MarkQueryBefore(CudaLane& lane) {
  if (lane.spec.priority != core::LanePriority::kHigh) return;
  if (lane.marks.set() < lane.mark_wanted.load(std::memory_order_relaxed)) MarkLocked(lane);
}

void CudaLanes::MarkIfDue(CudaLane& lane, TimeNs now_ns) {
  const uint64_t oldest = lane.marks.set() + 1;
  if (now_ns - lane.At(oldest).launched_ns > kMarkAfterNs) MarkLocked(lane);
}

void CudaLanes::SetWantedMark(CudaLane& lane) {
  const uint64_t wanted = lane.mark_wanted.load(std::memory_order_acquire);
  if (lane.marks.set() >= wanted) return;
  // A launcher holds the lane; it will want a later mark anyway.
  if (!lane.mutex.TryLock()) return;
  MarkLocked(lane);
  lane.mutex.Unlock();
}

void CudaLanes::ReplaceMark(CudaLane& lane) {
  if (!lane.mutex.TryLock()) return;
  const absl::Status status = lane.marks.Set(context_.api(), lane.stream, lane.launched.load());
  lane.mutex.Unlock();
  loss_.Record(status);
  if (status.ok()) lane.marks.Replaced();
}

void CudaLanes::CheckSilent(CudaLane& lane, TimeNs now_ns) {
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
  loss_.Record(context_.api().cuStreamQuery(lane.stream));
}

void CudaLanes::StopIfEmpty(const CudaLane& lane, LaneIndex index) {
  const auto stops = [&lane] {
    return lane.reported.load(std::memory_order_relaxed) ==
               lane.launched.load(std::memory_order_seq_cst) ||
           lane.abandoned.load(std::memory_order_relaxed);
  };
  if (!stops()) return;
  const uint64_t bit = uint64_t{1} << index;
  busy_.fetch_and(~bit, std::memory_order_seq_cst);
  if (!stops()) busy_.fetch_or(bit, std::memory_order_release);
}

bool CudaLanes::Idle() {
  const core::MutexLock lock(&making_);
  return std::all_of(owned_.begin(), owned_.end(), [this](const std::unique_ptr<CudaLane>& lane) {
    return context_.api().cuStreamQuery(lane->stream) != CUDA_ERROR_NOT_READY;
  });
}

void CudaLanes::Close() {
  const core::MutexLock lock(&making_);
  for (const std::unique_ptr<CudaLane>& lane : owned_) CloseLane(*lane);
}

void CudaLanes::Leak() {
  for (MappedMemory* memory : {&records_, &host_eviction_words_}) memory->Leak();
  for (DeviceMemory* memory : {&eviction_words_, &scratch_}) memory->Leak();
  check_.Leak();
}

}  // namespace gpushare::cuda
