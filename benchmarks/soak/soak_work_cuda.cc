// Tasks of the soak on a GPU: the catalogue's kernels, graphs and opaque work made of them, copies
// to the device and back. Every kernel's answer is compared bit by bit (a checksum) with that of a
// bare launch of its original grid, which was compared with the reference; a copy's with its
// source.

#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {
namespace {

constexpr double kVerifySeconds = 0.05;
constexpr double kBlockTaskUs = 30;
// Yield points of sincos_steps, as the tool and the contract suite say.
constexpr int64_t kYieldIntervalNs = 100'000;
constexpr double kStepsBlockTaskUs = 500;
constexpr size_t kCopyBytes = size_t{4} << 20;
constexpr int kGraphNodes = 3;
// Keeps the buffers of a task to some tens of MB.
constexpr uint32_t kRingMax = 2112;

std::string Text(const kernels::Status& status) { return status.message; }
std::string Cuda(cudaError_t code, const char* step) {
  return code == cudaSuccess ? std::string()
                             : std::string(step) + " answers " + cudaGetErrorString(code) + ".";
}

const char* CatalogueName(Kind kind) {
  switch (kind) {
    case Kind::kStreaming:
      return "streaming";
    case Kind::kSincosSteps:
      return "sincos_steps";
    case Kind::kFfma:
      return "ffma";
    case Kind::kStencil:
      return "stencil";
    case Kind::kBlackScholes:
      return "black_scholes";
    case Kind::kMd5:
      return "md5";
    case Kind::kSincos:
    case Kind::kCopyPinned:
    case Kind::kCopyPageable:
    case Kind::kOpaque:
    case Kind::kGraph:
      break;
  }
  return "sincos";
}

// A workload of the catalogue, and the answer that it must give.
class Subject {
 public:
  std::string Init(Kind kind, double solo_ms, uint32_t seed) {
    const kernels::CatalogueKernel* kernel = kernels::FindKernel(CatalogueName(kind));
    if (const int code = kernel->variants(&variants_); code != 0) {
      return Cuda(static_cast<cudaError_t>(code), kernel->name);
    }
    kernels::WorkloadOptions options;
    options.solo_ms = solo_ms;
    options.block_task_us = kernel->yields ? kStepsBlockTaskUs : kBlockTaskUs;
    // A yielding body needs a place of its own for every block task.
    options.ring_max = kernel->yields ? 0 : kRingMax;
    options.seed = seed;
    std::string error = Text(MakeWorkload(*kernel, options, &workload_));
    if (error.empty()) error = Text(workload_->ClearOutput());
    if (error.empty()) error = LaunchOriginal(cudaStreamPerThread);
    if (error.empty()) error = Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    kernels::Verification verification;
    if (error.empty()) error = Text(workload_->Verify(kVerifySeconds, &verification));
    if (error.empty() && (verification.wrong > 0 || verification.checked == 0)) {
      error = std::string(kernel->name) + " by itself is wrong: " + verification.first_wrong;
    }
    if (error.empty()) error = Text(workload_->Checksum(&expected_));
    return error;
  }

  std::string Clear() { return Text(workload_->ClearOutput()); }
  std::string Check() {
    uint64_t checksum = 0;
    if (std::string error = Text(workload_->Checksum(&checksum)); !error.empty()) return error;
    if (checksum == expected_) return {};
    return "The output of '" + std::string(workload_->kernel().name) +
           "' is not that of a bare launch.";
  }
  // On any stream, capturing ones too.
  std::string LaunchOriginal(cudaStream_t stream) const {
    void* arguments[] = {const_cast<void*>(workload_->params())};
    const kernels::Grid grid = workload_->grid();
    return Cuda(cudaLaunchKernel(variants_.original_symbol, dim3(grid.x, grid.y, grid.z),
                                 dim3(variants_.threads_per_block), arguments,
                                 variants_.dynamic_shared_bytes, stream),
                "cudaLaunchKernel");
  }

  const gpushare_kernel_variants& variants() const { return variants_; }
  const kernels::Workload& workload() const { return *workload_; }

 private:
  gpushare_kernel_variants variants_ = {};
  std::unique_ptr<kernels::Workload> workload_;
  uint64_t expected_ = 0;
};

class KernelTask final : public Task {
 public:
  KernelTask(std::unique_ptr<Subject> subject, const Kernel& kernel)
      : subject_(std::move(subject)), kernel_(kernel) {}

  std::string Fill(TaskOptions& options) override {
    const kernels::Workload& workload = subject_->workload();
    options.kernel = kernel_.get();
    options.block_tasks = workload.block_tasks();
    options.grid_x = static_cast<int32_t>(workload.grid().x);
    options.grid_y = static_cast<int32_t>(workload.grid().y);
    options.grid_z = static_cast<int32_t>(workload.grid().z);
    options.arguments = workload.params();
    options.arguments_size_bytes = workload.params_bytes();
    return subject_->Clear();
  }
  std::string Check(const gpushare_completion_record& record) override {
    // The original grid cannot lose a block task; the others report what they executed.
    const int64_t block_tasks = subject_->workload().block_tasks();
    if (record.form == GPUSHARE_FORM_WORKERS && record.block_tasks != block_tasks) {
      return "The record of '" + std::string(subject_->workload().kernel().name) + "' says " +
             std::to_string(record.block_tasks) + " block tasks, and the task has " +
             std::to_string(block_tasks) + ".";
    }
    return subject_->Check();
  }
  void Spoil() override { static_cast<void>(subject_->Clear()); }

 private:
  std::unique_ptr<Subject> subject_;
  const Kernel kernel_;
};

// Work of the caller's own, on a stream that the library gives.
class OpaqueTask final : public Task {
 public:
  OpaqueTask(std::unique_ptr<Subject> subject, double solo_ms)
      : subject_(std::move(subject)), declared_ns_(static_cast<int64_t>(solo_ms * 1.5e6)) {}

  std::string Fill(TaskOptions& options) override {
    options.kind = GPUSHARE_TASK_OPAQUE;
    options.declared_ns = declared_ns_;
    options.enqueue = [](void* stream, void* user) {
      // What goes wrong here leaves the output cleared, and Check sees it.
      static_cast<void>(
          static_cast<const Subject*>(user)->LaunchOriginal(static_cast<cudaStream_t>(stream)));
    };
    options.enqueue_user = subject_.get();
    return subject_->Clear();
  }
  std::string Check(const gpushare_completion_record&) override { return subject_->Check(); }
  void Spoil() override { static_cast<void>(subject_->Clear()); }

 private:
  std::unique_ptr<Subject> subject_;
  const int64_t declared_ns_;
};

class GraphTask final : public Task {
 public:
  std::string Init(const Runtime& runtime, const std::string& name, double solo_ms, uint32_t seed) {
    const Kind kinds[kGraphNodes] = {Kind::kSincos, Kind::kMd5, Kind::kBlackScholes};
    for (int i = 0; i < kGraphNodes; ++i) {
      std::string error =
          subjects_[i].Init(kinds[i], solo_ms / kGraphNodes, seed + static_cast<uint32_t>(i));
      if (!error.empty()) return error;
    }
    KernelOptions options;
    options.name = name.c_str();
    auto kernel = runtime.RegisterGraph(options, [this](void* stream, int32_t) {
      for (const Subject& subject : subjects_) {
        if (!subject.LaunchOriginal(static_cast<cudaStream_t>(stream)).empty()) return 1;
      }
      return 0;
    });
    if (!kernel.ok()) return kernel.status().ToString();
    kernel_ = *kernel;
    return {};
  }

  std::string Fill(TaskOptions& options) override {
    options.kernel = kernel_.get();
    for (Subject& subject : subjects_) {
      if (std::string error = subject.Clear(); !error.empty()) return error;
    }
    return {};
  }
  std::string Check(const gpushare_completion_record&) override {
    for (Subject& subject : subjects_) {
      if (std::string error = subject.Check(); !error.empty()) return "In a graph: " + error;
    }
    return {};
  }
  void Spoil() override { static_cast<void>(subjects_[0].Clear()); }

 private:
  Subject subjects_[kGraphNodes];
  Kernel kernel_;
};

// Buffers of a copy to the device and back. The content is another one in each job.
class CopyBuffers {
 public:
  ~CopyBuffers() {
    if (pinned_ == nullptr) return;
    cudaFreeHost(pinned_);
  }
  std::string Init(bool pinned, uint32_t seed) {
    state_ = seed;
    if (pinned) {
      if (std::string error = Cuda(cudaMallocHost(&pinned_, 2 * kCopyBytes), "cudaMallocHost");
          !error.empty()) {
        return error;
      }
      source_ = static_cast<unsigned char*>(pinned_);
    } else {
      pageable_.resize(2 * kCopyBytes);
      source_ = pageable_.data();
    }
    return Text(device_.Allocate(kCopyBytes));
  }
  void Renew() {
    for (size_t i = 0; i < kCopyBytes; i += sizeof(state_)) {
      state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
      std::memcpy(source_ + i, &state_, sizeof(state_));
    }
    std::memset(source_ + kCopyBytes, 0, kCopyBytes);
  }
  bool Equal() const { return std::memcmp(source_, source_ + kCopyBytes, kCopyBytes) == 0; }
  unsigned char* source() const { return source_; }
  unsigned char* destination() const { return source_ + kCopyBytes; }
  void* device() const { return device_.data(); }

 private:
  uint64_t state_ = 1;
  void* pinned_ = nullptr;
  std::vector<unsigned char> pageable_;
  unsigned char* source_ = nullptr;
  kernels::DeviceBuffer device_;
};

class CopyTask final : public Task {
 public:
  CopyTask(std::shared_ptr<CopyBuffers> buffers, bool pageable, bool back)
      : buffers_(std::move(buffers)), pageable_(pageable), back_(back) {}

  std::string Fill(TaskOptions& options) override {
    if (!back_) buffers_->Renew();
    options.kind = GPUSHARE_TASK_MEMCPY;
    options.copy_size_bytes = static_cast<int64_t>(kCopyBytes);
    options.copy_pageable = pageable_ ? 1 : 0;
    options.copy_direction = back_ ? GPUSHARE_COPY_DEVICE_TO_HOST : GPUSHARE_COPY_HOST_TO_DEVICE;
    options.copy_source = back_ ? buffers_->device() : buffers_->source();
    options.copy_destination =
        back_ ? static_cast<void*>(buffers_->destination()) : buffers_->device();
    return {};
  }
  std::string Check(const gpushare_completion_record&) override {
    if (!back_ || buffers_->Equal()) return {};
    return "What came back from the device is not what was copied there.";
  }
  void Spoil() override { buffers_->destination()[kCopyBytes / 2] ^= 1; }

 private:
  std::shared_ptr<CopyBuffers> buffers_;
  const bool pageable_;
  const bool back_;
};

class CudaWork final : public Work {
 public:
  std::string Make(const Runtime& runtime, Kind kind, double solo_ms, uint32_t seed,
                   std::unique_ptr<Task> (&made)[2]) override {
    if (kind == Kind::kCopyPinned || kind == Kind::kCopyPageable) {
      const bool pageable = kind == Kind::kCopyPageable;
      auto buffers = std::make_shared<CopyBuffers>();
      if (std::string error = buffers->Init(!pageable, seed); !error.empty()) return error;
      made[0] = std::make_unique<CopyTask>(buffers, pageable, false);
      made[1] = std::make_unique<CopyTask>(buffers, pageable, true);
      return {};
    }
    if (kind == Kind::kGraph) {
      auto graph = std::make_unique<GraphTask>();
      const std::string name = "soak_graph_" + std::to_string(++graphs_);
      if (std::string error = graph->Init(runtime, name, solo_ms, seed); !error.empty()) {
        return error;
      }
      made[0] = std::move(graph);
      return {};
    }
    auto subject = std::make_unique<Subject>();
    if (std::string error = subject->Init(kind, solo_ms, seed); !error.empty()) return error;
    if (kind == Kind::kOpaque) {
      made[0] = std::make_unique<OpaqueTask>(std::move(subject), solo_ms);
      return {};
    }
    if (std::string error = Register(runtime, kind, *subject); !error.empty()) return error;
    made[0] = std::make_unique<KernelTask>(std::move(subject), kernels_[kind]);
    return {};
  }

  int64_t FreeDeviceBytes() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return 0;
    return static_cast<int64_t>(free_bytes);
  }

 private:
  std::string Register(const Runtime& runtime, Kind kind, const Subject& subject) {
    if (kernels_.count(kind) != 0) return {};
    const gpushare_kernel_variants& variants = subject.variants();
    const std::string name = std::string("soak_") + CatalogueName(kind);
    KernelOptions options;
    options.name = name.c_str();
    options.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    options.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
    options.original_function = variants.original_function;
    options.worker_function = variants.worker_function;
    options.slice_function = variants.slice_function;
    options.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
    options.evictable = GPUSHARE_CHOICE_YES;
    if (kind == Kind::kSincosSteps) options.yield_interval_ns = kYieldIntervalNs;
    auto kernel = runtime.RegisterKernel(options);
    if (!kernel.ok()) return kernel.status().ToString();
    kernels_[kind] = *kernel;
    return {};
  }

  std::map<Kind, Kernel> kernels_;
  int graphs_ = 0;
};

}  // namespace

std::unique_ptr<Work> MakeCudaWork(std::string* why) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess || count == 0) {
    *why = "There is no GPU: cudaGetDeviceCount answers " + std::string(cudaGetErrorString(code)) +
           ".";
    return nullptr;
  }
  *why = Cuda(cudaSetDevice(0), "cudaSetDevice");
  if (!why->empty()) return nullptr;
  return std::make_unique<CudaWork>();
}

}  // namespace gpushare::soak
