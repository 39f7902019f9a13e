#include "benchmarks/gpu/ptx/twin_gpu.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "benchmarks/harness/failure.h"
#include "src/core/base/status.h"
#include "src/cuda/code/driver_jit.h"
#include "src/cuda/code/nvjitlink.h"
#include "src/cuda/code/shared_memory.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::benchmarks {
namespace {

// No batch of a benchmark takes longer.
constexpr double kHungUs = 5e6;

// Of PartWords, in words of 8 bytes.
constexpr size_t kScratchAt = 8;
constexpr size_t kCountersAt = 16;
constexpr size_t kHostWordAt = 8;
constexpr size_t kMappedWords = 16;

}  // namespace

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

TwinGpu::TwinGpu() : context_(Take(cuda::Context::Open(0), kNoGpu)) {
  current_ = std::make_unique<cuda::ScopedContext>(*context_);
  sms_ = context_->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  places_ = std::make_unique<cuda::Places>(*context_);
  // Without green contexts there are no halves, and the rest is still measured.
  const bool splits = places_->Split(sms_).ok();
  for (CUstream& stream : whole_) stream = Take(places_->MakeStream(core::kWholeDevice, 0));
  if (splits && places_->groups() > 1) MakeHalves();
}

void TwinGpu::MakeHalves() {
  const int32_t half = places_->groups() / 2;
  const std::array<core::PlaceSpec, 2> specs = {
      core::PlaceSpec{0, half, true}, core::PlaceSpec{half, places_->groups() - half, false}};
  for (size_t i = 0; i < specs.size(); ++i) {
    const core::PlaceIndex place = places_->count();
    Require(places_->Create(place, specs[i]));
    halves_[i] = Take(places_->MakeStream(place, 0));
    halves_sms_[i] = places_->place(place).sms;
  }
}

std::unique_ptr<cuda::Assembly> TwinGpu::MakeAssembly() const {
  auto assembly = std::make_unique<cuda::Assembly>(
      cuda::CodeCache(cuda::CodeCache::FolderOfEnvironment()),
      cuda::ArchitectureOf(context_->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                           context_->Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)));
  auto toolkit = cuda::OpenNvJitLink();
  if (toolkit.ok()) assembly->Add(*std::move(toolkit));
  assembly->Add(std::make_unique<cuda::DriverJit>(context_->api()));
  return assembly;
}

absl::StatusOr<Code> TwinGpu::CodeOf(const cuda::Assembly& assembly, const std::string& text,
                                     const std::string& form, const std::string& entry) {
  const cuda::ScopedContext current(*context_);
  Code code;
  const absl::Status status =
      assembly.Make(text, form, [&](absl::string_view bytes) -> absl::Status {
        const std::lock_guard<std::mutex> lock(loading_);
        CUlibrary library = nullptr;
        GPUSHARE_CU_RETURN(api(), cuLibraryLoadData(&library, bytes.data(), nullptr, nullptr, 0,
                                                    nullptr, nullptr, 0));
        code.library = std::make_shared<cuda::KernelLibrary>(api(), library);
        code.entry = entry;
        GPUSHARE_ASSIGN_OR_RETURN(code.function, FunctionOf(code, entry));
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return code;
}

absl::StatusOr<CUfunction> TwinGpu::FunctionOf(const Code& code, const std::string& entry) const {
  CUkernel kernel = nullptr;
  GPUSHARE_CU_RETURN(api(), cuLibraryGetKernel(&kernel, code.library->handle(), entry.c_str()));
  CUfunction function = nullptr;
  GPUSHARE_CU_RETURN(api(), cuKernelGetFunction(&function, kernel));
  return function;
}

int TwinGpu::AttributeOf(CUfunction function, CUfunction_attribute attribute) const {
  int value = 0;
  Require(GPUSHARE_CU(api(), cuFuncGetAttribute(&value, attribute, function)));
  return value;
}

int TwinGpu::BlocksPerSm(CUfunction function, int threads, int dynamic_shared_bytes) const {
  if (!cuda::AllowSharedMemory(api(), function, dynamic_shared_bytes).ok()) {
    return 0;  // with its static memory it is more than a block may have
  }
  int blocks = 0;
  Require(GPUSHARE_CU(api(),
                      cuOccupancyMaxActiveBlocksPerMultiprocessor(
                          &blocks, function, threads, static_cast<size_t>(dynamic_shared_bytes))));
  return blocks;
}

void TwinGpu::Await(CUstream stream) const {
  const double until_us = NowUs() + kHungUs;
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY) {
    if (NowUs() > until_us) {
      std::fprintf(stderr, "A launch does not end within %.0f s.\n", kHungUs / 1e6);
      std::_Exit(kFailed);
    }
    result = api().cuStreamQuery(stream);
  }
  Require(cuda::StatusOf(api(), result, "cuStreamQuery", __FILE__, __LINE__));
}

PartWords::PartWords(const TwinGpu& gpu)
    : gpu_(gpu),
      device_(Take(cuda::DeviceMemory::Make(
          gpu.context(), kCountersAt * sizeof(uint64_t) + kCounters * sizeof(uint32_t)))),
      mapped_(Take(cuda::MappedMemory::Make(gpu.context(), kMappedWords * sizeof(uint64_t)))) {
  static_assert(sizeof(gpushare_worker_scratch) <= (kCountersAt - kScratchAt) * sizeof(uint64_t));
  static_assert(sizeof(gpushare_worker_completion) <= kHostWordAt * sizeof(uint64_t));
}

void PartWords::ZeroCounters(CUstream stream) const {
  Require(
      GPUSHARE_CU(gpu_.api(), cuMemsetD8Async(device_.address() + kCountersAt * sizeof(uint64_t), 0,
                                              kCounters * sizeof(uint32_t), stream)));
}

gpushare_worker_launch PartWords::Header(const std::array<int32_t, 3>& grid, int64_t blocks,
                                         size_t counter, uint32_t claim_batch) {
  gpushare_worker_launch header = {};
  header.eviction_word = device_.At<uint64_t>(0);
  header.host_eviction_word = mapped_.Device<uint64_t>(kHostWordAt);
  header.counter =
      device_.At<uint32_t>(kCountersAt * sizeof(uint64_t) / sizeof(uint32_t) + counter % kCounters);
  header.scratch = reinterpret_cast<gpushare_worker_scratch*>(device_.At<uint64_t>(kScratchAt));
  header.completion = mapped_.Device<gpushare_worker_completion>(0);
  header.sequence = ++sequence_;
  header.epoch = ++epoch_;  // the word starts at epoch 0
  header.block_count = static_cast<uint32_t>(blocks);
  header.grid_x = static_cast<uint32_t>(grid[0]);
  header.grid_y = static_cast<uint32_t>(grid[1]);
  header.grid_z = static_cast<uint32_t>(grid[2]);
  header.claim_batch = claim_batch;
  return header;
}

void PartWords::Evict() {
  std::atomic_ref<uint64_t>(*mapped_.Host<uint64_t>(kHostWordAt))
      .store(uint64_t{epoch_} << 32, std::memory_order_release);
}

gpushare_worker_completion PartWords::Record() const {
  return *mapped_.Host<gpushare_worker_completion>(0);
}

}  // namespace gpushare::benchmarks
