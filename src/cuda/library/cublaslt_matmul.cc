// Matrix products with cuBLASLt. See library_backend.h, and library_calls.h for the layout of the
// operands.
//
// cuBLASLt is column-major: to it, a row-major matrix is the transpose. So the row-major product d
// = a b becomes the column-major d' = b' a', and the operands trade places.

#include "src/cuda/library/library_backend.h"

#if __has_include(<cublasLt.h>)

#include <cublasLt.h>

#include <array>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/cuda/driver/errors.h"
#include "src/cuda/driver/library_opener.h"
#include "src/cuda/library/library_descriptor.h"
#include "src/cuda/library/library_errors.h"

namespace gpushare::cuda {
namespace {

constexpr char kLibrary[] = "libcublasLt.so.13";

#define GPUSHARE_CUBLASLT_FUNCTIONS(X)    \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoCheck)              \
  X(cublasLtMatmulAlgoConfigSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)

struct CublasLtApi {
#define GPUSHARE_DECLARE(function) decltype(&::function) function = nullptr;
  GPUSHARE_CUBLASLT_FUNCTIONS(GPUSHARE_DECLARE)
#undef GPUSHARE_DECLARE
};

#define GPUSHARE_LT_RETURN(api, call)                                               \
  if (absl::Status gpushare_status = GPUSHARE_LT(api, call); !gpushare_status.ok()) \
  return gpushare_status

template <class Descriptor>
using Owned = OwnedDescriptor<Descriptor, cublasStatus_t>;

cudaDataType_t TypeOf(core::DataType type) {
  switch (type) {
    case core::DataType::kFloat16:
      return CUDA_R_16F;
    case core::DataType::kBfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// Operands at multiples of this may use algorithms that load 16 bytes at once or by TMA.
constexpr uint32_t kGoodAlignment = 16;
// The heuristic does not know which SMs a partition has: the clusters of its first algorithms may
// not fit there. So ask for many.
constexpr size_t kCandidates = 32;

// Algorithms for one alignment, best first, followed by the same algorithms without clusters. The
// first run finds one that works on this place.
struct Candidates {
  std::array<cublasLtMatmulHeuristicResult_t, 2 * kCandidates> found{};
  size_t count = 0;
  mutable std::atomic<size_t> works{0};
  // KindOf the operands that every algorithm refused last; 0 for none. A call of this kind tries
  // only `works`.
  mutable std::atomic<uint64_t> refused{0};
};

// Summarises what a library may refuse operands for when the shapes are right: their alignment (up
// to 256 bytes) and which of them are equal. Never 0.
uint64_t KindOf(const core::LibraryArguments& arguments, const void* c) {
  uint64_t kind = 1;
  for (const void* pointer : {arguments.a, arguments.b, c, static_cast<const void*>(arguments.d)}) {
    kind = kind << 8 | (reinterpret_cast<uintptr_t>(pointer) & 0xFF);
  }
  for (const bool same : {arguments.a == arguments.d, arguments.b == arguments.d, c == arguments.d,
                          arguments.beta == 0}) {
    kind = kind << 1 | static_cast<uint64_t>(same);
  }
  return kind;
}

class Matmul final : public LibraryPlan {
 public:
  Matmul(const DriverApi& driver, const CublasLtApi& api, const core::LibraryCall& call)
      : driver_(driver), api_(api), call_(call) {}

  absl::Status Make(cublasLtHandle_t handle, int32_t sm_count) {
    GPUSHARE_LT_RETURN(api_, cublasLtMatmulDescCreate(product_.Put(api_.cublasLtMatmulDescDestroy),
                                                      CUBLAS_COMPUTE_32F, CUDA_R_32F));
    // To cuBLASLt, b is the first operand: see the top of this file.
    const cublasOperation_t first = call_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = call_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    for (const absl::Status& status :
         {Set(CUBLASLT_MATMUL_DESC_TRANSA, first), Set(CUBLASLT_MATMUL_DESC_TRANSB, second)}) {
      if (!status.ok()) return status;
    }
    if (sm_count > 0) {
      if (absl::Status status = Set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, sm_count); !status.ok()) {
        return status;
      }
    }
    for (const absl::Status& status : {MakeLayout(b_, call_.transpose_b ? call_.n : call_.k,
                                                  call_.transpose_b ? call_.k : call_.n),
                                       MakeLayout(a_, call_.transpose_a ? call_.k : call_.m,
                                                  call_.transpose_a ? call_.m : call_.k),
                                       MakeLayout(d_, call_.m, call_.n)}) {
      if (!status.ok()) return status;
    }
    if (absl::Status status = Find(handle, kGoodAlignment, aligned_); !status.ok()) return status;
    // Some shapes have no algorithm for unaligned operands; Enqueue then refuses such operands.
    has_any_ = Find(handle, static_cast<uint32_t>(BytesOf(call_.type)), any_).ok();
    return absl::OkStatus();
  }

  OperandBytes operands() const override {
    const auto bytes = [this](int64_t rows, int64_t columns) {
      return static_cast<size_t>(call_.batch * rows * columns) * BytesOf(call_.type);
    };
    return {bytes(call_.m, call_.k), bytes(call_.k, call_.n), bytes(call_.m, call_.n)};
  }

  absl::Status Enqueue(void* handle, CUstream stream, void* workspace,
                       const core::LibraryArguments& arguments) const override {
    if (arguments.c == nullptr && arguments.beta != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("A matrix product adds beta ", arguments.beta, " times c, and c is null."));
    }
    // With beta 0 cuBLASLt does not read c, but it refuses a null pointer.
    const void* const c = arguments.c == nullptr ? arguments.d : arguments.c;
    const void* const d = arguments.d;
    uintptr_t bits = 0;
    for (const void* pointer : {arguments.a, arguments.b, c, d}) {
      bits |= reinterpret_cast<uintptr_t>(pointer);
    }
    if (const size_t element = BytesOf(call_.type); bits % element != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("An operand of a matrix product does not start at a multiple of ", element,
                       " bytes, the size of an element."));
    }
    const bool aligned = bits % kGoodAlignment == 0;
    if (!aligned && !has_any_) {
      return absl::InvalidArgumentError(
          absl::StrCat("An operand of a matrix product does not start at a multiple of ",
                       kGoodAlignment, " bytes, and cuBLASLt has no algorithm for that."));
    }
    return Run(aligned ? aligned_ : any_, handle, stream, workspace, arguments, c);
  }

 private:
  // Runs the algorithm that worked last, or else the next one that works.
  absl::Status Run(const Candidates& candidates, void* handle, CUstream stream, void* workspace,
                   const core::LibraryArguments& arguments, const void* c) const {
    const uint64_t kind = KindOf(arguments, c);
    const bool known_as_wrong = candidates.refused.load(std::memory_order_relaxed) == kind;
    const size_t first = candidates.works.load(std::memory_order_relaxed);
    // the first refusal says most about wrong operands
    cublasStatus_t refusal = CUBLAS_STATUS_SUCCESS;
    bool all_refuse = true;
    for (size_t now = first;; ++now) {
      const cublasStatus_t code = api_.cublasLtMatmul(
          static_cast<cublasLtHandle_t>(handle), product_.get(), &arguments.alpha, arguments.b,
          b_.get(), arguments.a, a_.get(), &arguments.beta, c, d_.get(), arguments.d, d_.get(),
          &candidates.found[now].algo, workspace, kWorkspaceBytes, stream);
      if (refusal == CUBLAS_STATUS_SUCCESS) refusal = code;
      const bool refused = AnotherAlgorithmAfter(static_cast<int>(code)) == AnotherAlgorithm::kYes;
      all_refuse = all_refuse && refused;
      // A launch that the SMs refuse has enqueued nothing, so the next algorithm may try.
      if (now + 1 < candidates.count && !(known_as_wrong && refused) &&
          TriesAnother(code, stream)) {
        continue;
      }
      // Remember only an algorithm that ran. All algorithms refuse wrong operands: remember their
      // kind, so that the next such call tries one algorithm only.
      if (code == CUBLAS_STATUS_SUCCESS && now != first) {
        candidates.works.store(now, std::memory_order_relaxed);
      }
      if (code == CUBLAS_STATUS_SUCCESS && known_as_wrong) {
        candidates.refused.store(0, std::memory_order_relaxed);
      }
      if (all_refuse) candidates.refused.store(kind, std::memory_order_relaxed);
      const cublasStatus_t reported = refused ? refusal : code;
      return CublasStatusOf(static_cast<int>(reported), api_.cublasLtGetStatusString(reported),
                            "cublasLtMatmul", __FILE__, __LINE__);
    }
  }

  bool TriesAnother(cublasStatus_t code, CUstream stream) const {
    const AnotherAlgorithm another = AnotherAlgorithmAfter(static_cast<int>(code));
    if (another != AnotherAlgorithm::kUnlessLost) return another == AnotherAlgorithm::kYes;
    return !IsSticky(driver_.cuStreamQuery(stream));
  }

  template <class Value>
  absl::Status Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    static_assert(sizeof(Value) == 4);  // every attribute that this class sets has 4 bytes
    return GPUSHARE_LT(
        api_, cublasLtMatmulDescSetAttribute(product_.get(), attribute, &value, sizeof(value)));
  }

  // Describes a row-major matrix of `rows` x `columns` as its column-major transpose.
  absl::Status MakeLayout(Owned<cublasLtMatrixLayout_t>& layout, int64_t rows, int64_t columns) {
    GPUSHARE_LT_RETURN(
        api_, cublasLtMatrixLayoutCreate(layout.Put(api_.cublasLtMatrixLayoutDestroy),
                                         TypeOf(call_.type), static_cast<uint64_t>(columns),
                                         static_cast<uint64_t>(rows), columns));
    if (call_.batch == 1) return absl::OkStatus();
    const auto count = static_cast<int32_t>(call_.batch);
    const int64_t stride = rows * columns;
    GPUSHARE_LT_RETURN(
        api_, cublasLtMatrixLayoutSetAttribute(layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                               &count, sizeof(count)));
    return GPUSHARE_LT(api_, cublasLtMatrixLayoutSetAttribute(
                                 layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                 sizeof(stride)));
  }

  absl::Status Find(cublasLtHandle_t handle, uint32_t alignment, Candidates& out) {
    Owned<cublasLtMatmulPreference_t> preference;
    GPUSHARE_LT_RETURN(
        api_, cublasLtMatmulPreferenceCreate(preference.Put(api_.cublasLtMatmulPreferenceDestroy)));
    const uint64_t workspace_bytes = kWorkspaceBytes;
    GPUSHARE_LT_RETURN(api_, cublasLtMatmulPreferenceSetAttribute(
                                 preference.get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                 &workspace_bytes, sizeof(workspace_bytes)));
    for (const cublasLtMatmulPreferenceAttributes_t attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      GPUSHARE_LT_RETURN(api_, cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute,
                                                                    &alignment, sizeof(alignment)));
    }
    int count = 0;
    GPUSHARE_LT_RETURN(
        api_, cublasLtMatmulAlgoGetHeuristic(
                  handle, product_.get(), b_.get(), a_.get(), d_.get(), d_.get(), preference.get(),
                  static_cast<int>(kCandidates), out.found.data(), &count));
    while (out.count < static_cast<size_t>(count) &&
           out.found[out.count].state == CUBLAS_STATUS_SUCCESS) {
      ++out.count;
    }
    AddWithoutClusters(handle, out);
    if (out.count > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "cuBLASLt has no algorithm for a product of m ", call_.m, ", n ", call_.n, ", k ", call_.k,
        ", batch ", call_.batch, " and an alignment of ", alignment, " bytes."));
  }

  void AddWithoutClusters(cublasLtHandle_t handle, Candidates& out) const {
    const uint16_t no_cluster = CUBLASLT_CLUSTER_SHAPE_1x1x1;
    for (size_t i = 0, found = out.count; i < found; ++i) {
      cublasLtMatmulHeuristicResult_t one = out.found[i];
      if (api_.cublasLtMatmulAlgoConfigSetAttribute(
              &one.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, &no_cluster, sizeof(no_cluster)) !=
          CUBLAS_STATUS_SUCCESS) {
        continue;
      }
      if (api_.cublasLtMatmulAlgoCheck(handle, product_.get(), b_.get(), a_.get(), d_.get(),
                                       d_.get(), &one.algo, &one) != CUBLAS_STATUS_SUCCESS ||
          one.workspaceSize > kWorkspaceBytes) {
        continue;
      }
      out.found[out.count++] = one;
    }
  }

  const DriverApi& driver_;
  const CublasLtApi& api_;
  const core::LibraryCall call_;
  Owned<cublasLtMatmulDesc_t> product_;
  Owned<cublasLtMatrixLayout_t> a_, b_, d_;
  Candidates aligned_;
  Candidates any_;
  bool has_any_ = false;
};

class CublasLt final : public LibraryBackend {
 public:
  explicit CublasLt(const DriverApi& driver) : driver_(driver) {}

  absl::Status Open() {
    absl::StatusOr<void*> library = OpenLibrary(kLibrary);
    if (!library.ok()) return library.status();
#define GPUSHARE_RESOLVE(function)                                                         \
  if (absl::Status status = ResolveFunction(*library, kLibrary, #function, api_.function); \
      !status.ok()) {                                                                      \
    return status;                                                                         \
  }
    GPUSHARE_CUBLASLT_FUNCTIONS(GPUSHARE_RESOLVE)
#undef GPUSHARE_RESOLVE
    return absl::OkStatus();
  }

  absl::StatusOr<void*> MakeHandle(CUstream /*stream*/) override {
    cublasLtHandle_t handle = nullptr;
    GPUSHARE_LT_RETURN(api_, cublasLtCreate(&handle));
    return static_cast<void*>(handle);
  }
  void DestroyHandle(void* handle) override {
    api_.cublasLtDestroy(static_cast<cublasLtHandle_t>(handle));
  }
  absl::StatusOr<std::unique_ptr<LibraryPlan>> MakePlan(void* handle,
                                                        const core::KernelDesc& kernel,
                                                        int32_t sm_count) override {
    auto plan = std::make_unique<Matmul>(driver_, api_, *kernel.library_call());
    if (absl::Status status = plan->Make(static_cast<cublasLtHandle_t>(handle), sm_count);
        !status.ok()) {
      return status;
    }
    return std::unique_ptr<LibraryPlan>(std::move(plan));
  }

 private:
  const DriverApi& driver_;
  CublasLtApi api_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCublasLt(const DriverApi& api) {
  auto backend = std::make_unique<CublasLt>(api);
  if (absl::Status status = backend->Open(); !status.ok()) return status;
  return std::unique_ptr<LibraryBackend>(std::move(backend));
}

}  // namespace gpushare::cuda

#else  // cublasLt.h is missing

namespace gpushare::cuda {

absl::StatusOr<std::unique_ptr<LibraryBackend>> OpenCublasLt(const DriverApi& /*api*/) {
  return absl::UnimplementedError(
      "This build of gpushare makes no matrix products: cublasLt.h was not found when it was "
      "compiled.");
}

}  // namespace gpushare::cuda

#endif
