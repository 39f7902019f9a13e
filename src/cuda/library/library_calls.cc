// Lanes, prepared calls and their launches. See library_calls.h.
//
// PrepareCallOnLane prepares each pair of a lane and a call once, in AddLane or Prepare, whichever
// publishes second. A call is published when it is prepared on every published lane; a lane is
// published when every published call is prepared on it. So an unpublished lane or call belongs to
// one thread, and no slow step runs under the mutex.

#include "src/cuda/library/library_calls.h"

#include <array>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/cuda/driver/await_stream.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/library/library_backend.h"

namespace gpushare::cuda {
namespace {

using core::KernelDesc;
using core::KernelId;
using core::LaneIndex;

enum BackendIndex : size_t { kCublasLt = 0, kCudnn = 1, kBackends = 2 };

BackendIndex BackendOf(core::LibraryOperation operation) {
  return operation == core::LibraryOperation::kMatmul ? kCublasLt : kCudnn;
}

// A first run that needs more device memory than this is skipped.
constexpr size_t kFirstRunBytesMax = size_t{1} << 30;
// A first run waits behind the work on the device. All first runs of one preparation together wait
// at most this long.
constexpr std::chrono::seconds kFirstRunMax{5};

struct Lane {
  LaneIndex index = core::kNoLane;
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  core::PlaceIndex place = core::kWholeDevice;
  int32_t sm_count = 0;
  CUdeviceptr workspace = 0;
  std::array<void*, kBackends> handles{};
  // Handles for making plans and for first runs, because calls may use `handles` meanwhile. Null if
  // none was made on this lane.
  std::array<void*, kBackends> own_handles{};
  CUstream own_stream = nullptr;  // of these handles
  // A handle serves one thread at a time. Two threads contend for it only if an application submits
  // to one queue from both.
  core::Mutex mutex;
};

struct PlanOfSize {
  int32_t sm_count = 0;
  std::unique_ptr<LibraryPlan> plan;
};

struct Call {
  KernelDesc kernel;
  BackendIndex backend = kCublasLt;
  std::vector<PlanOfSize> plans;
  // By lane; null until the call is prepared on that lane.
  std::array<std::atomic<const LibraryPlan*>, core::kMaxLanes> of_lane{};
};

}  // namespace

class LibraryCalls::Impl {
 public:
  Impl(const DriverApi& api, MakeStream make_stream)
      : api_(api), make_stream_(std::move(make_stream)) {}

  ~Impl() {
    // Destroy plans before the handles that they were made with.
    owned_calls_.clear();
    for (const auto* lanes : {&owned_lanes_, &failed_lanes_}) {
      for (const std::unique_ptr<Lane>& lane : *lanes) Free(*lane);
    }
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status AddLane(LaneIndex index, CUstream stream, core::PlaceIndex place, int32_t sm_count) {
    if (index < 0 || index >= core::kMaxLanes) {
      return absl::InvalidArgumentError(absl::StrCat("A lane for library calls has the index ",
                                                     index, ", and the limit is ",
                                                     core::kMaxLanes - 1, "."));
    }
    auto lane = std::make_unique<Lane>();
    lane->stream = stream;
    lane->place = place;
    lane->sm_count = sm_count;
    // Use the green context of the lane's place: the libraries count the SMs of the current
    // context, and cuDNN refuses a stream of another context.
    GPUSHARE_CU_RETURN(api_, cuStreamGetCtx(stream, &lane->context));
    lane->index = index;
    const Moment until = std::chrono::steady_clock::now() + kFirstRunMax;
    std::vector<const LibraryPlan*> plans;  // of the published calls so far
    for (;;) {
      Call* next = nullptr;
      {
        const core::MutexLock lock(&mutex_);
        if (plans.size() == owned_calls_.size()) {
          Publish(std::move(lane), plans);
          return absl::OkStatus();
        }
        next = owned_calls_[plans.size()].get();
      }
      absl::StatusOr<const LibraryPlan*> plan = PrepareCallOnLane(*next, *lane, until);
      if (!plan.ok()) {
        const core::MutexLock lock(&mutex_);
        failed_lanes_.push_back(std::move(lane));
        return plan.status();
      }
      plans.push_back(*plan);
    }
  }

  bool MayRemoveLanes() {
    const core::MutexLock lock(&mutex_);
    return owned_calls_.empty();
  }

  void RemoveLane(LaneIndex index) {
    const core::MutexLock lock(&mutex_);
    const Lane* const removed = lanes_[static_cast<size_t>(index)].exchange(nullptr);
    if (removed == nullptr) return;
    Free(*removed);
    owned_lanes_.erase(std::find_if(owned_lanes_.begin(), owned_lanes_.end(),
                                    [removed](const auto& lane) { return lane.get() == removed; }));
  }

  absl::Status Prepare(const KernelDesc& kernel) {
    const core::LibraryCall* const given = kernel.library_call();
    if (given == nullptr || given->operation == core::LibraryOperation::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kernel '", kernel.name, "' has no library call."));
    }
    const core::LibraryCall& shapes = *given;
    if (kernel.id.value > core::kMaxKernels) {
      return absl::InvalidArgumentError(absl::StrCat("Kernel '", kernel.name, "' has the id ",
                                                     kernel.id.value, ", and the limit is ",
                                                     core::kMaxKernels, "."));
    }
    if (absl::Status status = Open(BackendOf(shapes.operation)); !status.ok()) {
      return status;
    }
    const Moment until = std::chrono::steady_clock::now() + kFirstRunMax;
    auto call = std::make_unique<Call>();
    call->kernel = kernel;
    call->backend = BackendOf(shapes.operation);
    for (size_t prepared_lanes = 0;; ++prepared_lanes) {
      Lane* next = nullptr;
      {
        const core::MutexLock lock(&mutex_);
        if (prepared_lanes == owned_lanes_.size()) {
          calls_[kernel.id.value].store(call.get(), std::memory_order_release);
          owned_calls_.push_back(std::move(call));
          return absl::OkStatus();
        }
        next = owned_lanes_[prepared_lanes].get();
      }
      absl::StatusOr<const LibraryPlan*> plan = PrepareCallOnLane(*call, *next, until);
      if (!plan.ok()) return plan.status();
      call->of_lane[static_cast<size_t>(next->index)].store(*plan, std::memory_order_release);
    }
  }

  absl::Status Enqueue(KernelId kernel, LaneIndex index, const core::LibraryArguments& arguments) {
    const Call* const call = kernel.value <= core::kMaxKernels
                                 ? calls_[kernel.value].load(std::memory_order_acquire)
                                 : nullptr;
    Lane* const to = index >= 0 && index < core::kMaxLanes ? lane(index) : nullptr;
    const LibraryPlan* const plan =
        call == nullptr || to == nullptr
            ? nullptr
            : call->of_lane[static_cast<size_t>(index)].load(std::memory_order_acquire);
    if (plan == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("Library call ", kernel.value, " is not prepared for lane ", index, "."));
    }
    if (arguments.a == nullptr || arguments.d == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("Library call '", call->kernel.name, "' has no operand a or no result d."));
    }
    if (NeedsB(*call) && arguments.b == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("Library call '", call->kernel.name, "' has no operand b."));
    }
    const ScopedContext current(api_, to->context);
    const core::MutexLock lock(&to->mutex);
    absl::Status status = plan->Enqueue(to->handles[call->backend], to->stream,
                                        reinterpret_cast<void*>(to->workspace), arguments);
    if (absl::IsInternal(status)) return LostOr(*to, std::move(status));
    return status;
  }

 private:
  static bool NeedsB(const Call& call) {
    const core::LibraryOperation operation = call.kernel.library_call()->operation;
    return operation == core::LibraryOperation::kMatmul ||
           operation == core::LibraryOperation::kConvolution;
  }

  Lane* lane(LaneIndex index) const {
    return lanes_[static_cast<size_t>(index)].load(std::memory_order_acquire);
  }

  // Asks the driver whether the context is unusable, because the libraries do not say.
  absl::Status LostOr(const Lane& lane, absl::Status status) const {
    const ScopedRelaxedCapture relaxed(api_);
    const CUresult code = api_.cuStreamQuery(lane.stream);
    if (!IsSticky(code)) return status;
    return StatusOf(api_, code, "cuStreamQuery(lane.stream)", __FILE__, __LINE__);
  }

  // Only Prepare calls this; AddLane finds the libraries of published calls open.
  absl::Status Open(BackendIndex index) {
    if (backends_[index] != nullptr) return absl::OkStatus();
    absl::StatusOr<std::unique_ptr<LibraryBackend>> backend =
        index == kCublasLt ? OpenCublasLt(api_) : OpenCudnn();
    if (!backend.ok()) return backend.status();
    backends_[index] = *std::move(backend);
    return absl::OkStatus();
  }

  void Publish(std::unique_ptr<Lane> added, const std::vector<const LibraryPlan*>& plans)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto index = static_cast<size_t>(added->index);
    for (size_t i = 0; i < plans.size(); ++i) {
      owned_calls_[i]->of_lane[index].store(plans[i], std::memory_order_release);
    }
    lanes_[index].store(added.get(), std::memory_order_release);
    owned_lanes_.push_back(std::move(added));
  }

  void Free(const Lane& lane) {
    const ScopedContext current(api_, lane.context);
    for (size_t i = 0; i < kBackends; ++i) {
      for (void* handle : {lane.handles[i], lane.own_handles[i]}) {
        if (handle != nullptr) backends_[i]->DestroyHandle(handle);
      }
    }
    if (lane.own_stream != nullptr) api_.cuStreamDestroy(lane.own_stream);
    if (lane.workspace != 0) api_.cuMemFree(lane.workspace);
  }

  // Makes what the call needs on the lane: handle, workspace, plan, and a first run in a new
  // context. Null where the call does not run. Either the call or the lane is not yet published.
  absl::StatusOr<const LibraryPlan*> PrepareCallOnLane(Call& call, Lane& to, Moment until) {
    if (to.place != core::kWholeDevice && !call.kernel.confinable) return nullptr;
    const ScopedContext current(api_, to.context);
    if (to.workspace == 0) GPUSHARE_CU_RETURN(api_, cuMemAlloc(&to.workspace, kWorkspaceBytes));
    absl::StatusOr<void*> handle = HandleIn(to.handles[call.backend], call.backend, to.stream);
    if (!handle.ok()) return handle.status();
    const LibraryPlan* const made = FindPlan(call, to.sm_count);
    const bool ran = RanInContext(call, to);
    if (made != nullptr && ran) return made;
    if (to.own_stream == nullptr) {
      const absl::StatusOr<CUstream> stream = make_stream_(to.place);
      if (!stream.ok()) return stream.status();
      to.own_stream = *stream;
    }
    handle = HandleIn(to.own_handles[call.backend], call.backend, to.own_stream);
    if (!handle.ok()) return handle.status();
    absl::StatusOr<const LibraryPlan*> plan = made;
    if (made == nullptr) plan = MakePlan(call, *handle, to.sm_count);
    if (!plan.ok() || ran) return plan;
    if (absl::Status status = RunOnce(**plan, *handle, to, until); !status.ok()) return status;
    return plan;
  }

  absl::StatusOr<void*> HandleIn(void*& handle, BackendIndex backend, CUstream stream) {
    if (handle != nullptr) return handle;
    absl::StatusOr<void*> made = backends_[backend]->MakeHandle(stream);
    if (made.ok()) handle = *made;
    return made;
  }

  static const LibraryPlan* FindPlan(const Call& call, int32_t sm_count) {
    for (const PlanOfSize& made : call.plans) {
      if (made.sm_count == sm_count) return made.plan.get();
    }
    return nullptr;
  }

  absl::StatusOr<const LibraryPlan*> MakePlan(Call& call, void* handle, int32_t sm_count) {
    absl::StatusOr<std::unique_ptr<LibraryPlan>> plan =
        backends_[call.backend]->MakePlan(handle, call.kernel, sm_count);
    if (!plan.ok()) {
      return absl::Status(plan.status().code(), absl::StrCat("Library call '", call.kernel.name,
                                                             "' cannot be prepared for ", sm_count,
                                                             " SMs: ", plan.status().message()));
    }
    call.plans.push_back({sm_count, *std::move(plan)});
    return call.plans.back().plan.get();
  }

  bool RanInContext(const Call& call, const Lane& to) const {
    for (LaneIndex index = 0; index < core::kMaxLanes; ++index) {
      const Lane* const other = lane(index);
      if (other != nullptr && other->context == to.context &&
          call.of_lane[static_cast<size_t>(index)].load(std::memory_order_relaxed) != nullptr) {
        return true;
      }
    }
    return false;
  }

  // Runs the call once on scratch operands, with its own workspace and stream, because other calls
  // may run on the lane meanwhile. This only saves time later: without memory or time for it, the
  // first task is slower.
  absl::Status RunOnce(const LibraryPlan& plan, void* handle, const Lane& to, Moment until) {
    const OperandBytes bytes = plan.operands();
    if (bytes.a + bytes.b + bytes.d > kFirstRunBytesMax) return absl::OkStatus();
    if (std::chrono::steady_clock::now() >= until) return absl::OkStatus();
    // Memory in the order of the stream: to free other memory waits for all work on the device.
    std::vector<CUdeviceptr> scratch;
    const auto take = [&](size_t size) -> void* {
      CUdeviceptr address = 0;
      if (size == 0 || api_.cuMemAllocAsync(&address, size, to.own_stream) != CUDA_SUCCESS) {
        return nullptr;
      }
      scratch.push_back(address);
      return reinterpret_cast<void*>(address);
    };
    core::LibraryArguments arguments;
    arguments.a = take(bytes.a);
    arguments.b = take(bytes.b);
    arguments.d = take(bytes.d);
    void* const workspace = take(kWorkspaceBytes);
    const bool complete = arguments.a != nullptr && arguments.d != nullptr &&
                          (bytes.b == 0 || arguments.b != nullptr) && workspace != nullptr;
    absl::Status enqueued;
    if (complete) enqueued = plan.EnqueueFirst(handle, to.own_stream, workspace, arguments);
    for (const CUdeviceptr address : scratch) {
      absl::Status freed = GPUSHARE_CU(api_, cuMemFreeAsync(address, to.own_stream));
      if (absl::IsDataLoss(freed)) return freed;
    }
    // A run that takes longer goes on with its memory.
    const CUresult code = AwaitStream(api_, to.own_stream, until);
    if (code == CUDA_ERROR_NOT_READY) return absl::OkStatus();
    absl::Status ended = StatusOf(api_, code, "cuStreamQuery(to.own_stream)", __FILE__, __LINE__);
    return ended.ok() ? enqueued : ended;
  }

  const DriverApi& api_;
  const MakeStream make_stream_;
  core::Mutex mutex_;
  // Declared before the calls, so that plans are destroyed before their backends.
  std::array<std::unique_ptr<LibraryBackend>, kBackends> backends_;
  std::vector<std::unique_ptr<Lane>> owned_lanes_ ABSL_GUARDED_BY(mutex_);
  // they still own handles
  std::vector<std::unique_ptr<Lane>> failed_lanes_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Call>> owned_calls_ ABSL_GUARDED_BY(mutex_);
  std::array<std::atomic<Lane*>, core::kMaxLanes> lanes_{};
  std::array<std::atomic<Call*>, core::kMaxKernels + 1> calls_{};
};

LibraryCalls::LibraryCalls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LibraryCalls::~LibraryCalls() = default;

std::unique_ptr<LibraryCalls> LibraryCalls::Make(const DriverApi& api, MakeStream make_stream) {
  auto impl = std::make_unique<Impl>(api, std::move(make_stream));
  return std::unique_ptr<LibraryCalls>(new LibraryCalls(std::move(impl)));
}

absl::Status LibraryCalls::AddLane(LaneIndex lane, CUstream stream, core::PlaceIndex place,
                                   int32_t sm_count) {
  return impl_->AddLane(lane, stream, place, sm_count);
}

bool LibraryCalls::MayRemoveLanes() { return impl_->MayRemoveLanes(); }

void LibraryCalls::RemoveLane(LaneIndex lane) { impl_->RemoveLane(lane); }

absl::Status LibraryCalls::Prepare(const KernelDesc& kernel) { return impl_->Prepare(kernel); }

absl::Status LibraryCalls::Enqueue(KernelId kernel, LaneIndex lane,
                                   const core::LibraryArguments& arguments) {
  return impl_->Enqueue(kernel, lane, arguments);
}

}  // namespace gpushare::cuda
