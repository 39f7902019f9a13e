#include "tools/gpushare/cuda/tasks.h"

#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>
#include <vector>

#include "benchmarks/kernels/registration.h"
#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

namespace {

// CPU time for the reference results of one task, after each run.
constexpr double kVerifySeconds = 0.2;

void CheckKernels(const kernels::Status& status) {
  if (!status.ok()) throw RunError(status.message);
}

// The byte of a copy's source at `index`; the bytes look random.
unsigned char CopyByte(size_t index) {
  const uint64_t h = (index + 1) * 0x9E3779B97F4A7C15ULL;
  return static_cast<unsigned char>(h >> 56);
}

class CatalogueTask final : public BoundTask {
 public:
  CatalogueTask(const BeKernel& kernel, int64_t block_tasks, int sms) {
    kernels::WorkloadOptions options;
    options.block_task_us = kernel.block_task_us;
    options.block_tasks = static_cast<uint32_t>(block_tasks);
    options.sms = sms;
    CheckKernels(kernels::MakeWorkload(*kernels::FindKernel(kernel.kernel), options, &workload_));
    kernels::FillTask(*workload_, binding_);
  }

  void BeginRun() override { CheckKernels(workload_->ClearOutput()); }

  void AddRaw(CudaRawApp& raw) override {
    gpushare_kernel_variants variants = {};
    CheckCuda(workload_->kernel().variants(&variants), "Loading a kernel");
    raw.AddKernel(variants, binding_);
  }

  void Verify(const std::string& app) override {
    const kernels::Status status = workload_->VerifyOutput(kVerifySeconds);
    if (!status.ok()) throw RunError("App '" + app + "': " + status.message);
  }

 private:
  std::unique_ptr<kernels::Workload> workload_;
};

class CopyTask final : public BoundTask {
 public:
  explicit CopyTask(const WorkItem& item)
      : to_device_(item.direction == CopyDirection::kHostToDevice),
        bytes_(static_cast<size_t>(item.bytes)),
        device_(bytes_) {
    if (item.pinned) {
      void* host = nullptr;
      const std::string step = "Allocating " + std::to_string(bytes_) + " bytes of pinned memory";
      CheckCuda(cudaMallocHost(&host, bytes_), step.c_str());
      pinned_.reset(host);
      host_ = static_cast<unsigned char*>(host);
    } else {
      pageable_.resize(bytes_);
      host_ = pageable_.data();
    }
    for (size_t i = 0; i < bytes_; ++i) host_[i] = CopyByte(i);
    CheckCuda(cudaMemcpy(device_.data(), host_, bytes_, cudaMemcpyHostToDevice),
              "Filling a copy's source");
    binding_.kind = GPUSHARE_TASK_MEMCPY;
    binding_.copy_size_bytes = item.bytes;
    binding_.copy_direction =
        to_device_ ? GPUSHARE_COPY_HOST_TO_DEVICE : GPUSHARE_COPY_DEVICE_TO_HOST;
    binding_.copy_pageable = item.pinned ? 0 : 1;
    binding_.copy_destination = to_device_ ? device_.data() : host_;
    binding_.copy_source = to_device_ ? static_cast<const void*>(host_) : device_.data();
    CopyTask::BeginRun();
  }

  void BeginRun() override {
    if (to_device_) {
      CheckCuda(cudaMemset(device_.data(), 0, bytes_), "Clearing a copy's destination");
      CheckCuda(cudaDeviceSynchronize(), "Clearing a copy's destination");
    } else {
      std::memset(host_, 0, bytes_);
    }
  }

  void AddRaw(CudaRawApp& raw) override {
    // The copy would block the calling thread, which would be late for the next arrival.
    if (raw.best_effort() && binding_.copy_pageable != 0) {
      throw InputError("A row without the library has a best-effort copy of " +
                       std::to_string(bytes_) +
                       " bytes of pageable memory, and it must be pinned.");
    }
    void* to = binding_.copy_destination;
    const void* from = binding_.copy_source;
    const cudaMemcpyKind kind = to_device_ ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    raw.AddTask([to, from, kind, bytes = bytes_](void* stream) {
      CheckCuda(cudaMemcpyAsync(to, from, bytes, kind, static_cast<cudaStream_t>(stream)),
                "Copying");
    });
  }

  void Verify(const std::string& app) override {
    std::vector<unsigned char> read;
    const unsigned char* got = host_;
    if (to_device_) {
      read.resize(bytes_);
      CheckCuda(cudaMemcpy(read.data(), device_.data(), bytes_, cudaMemcpyDeviceToHost),
                "Reading a copy's destination");
      got = read.data();
    }
    for (size_t i = 0; i < bytes_; ++i) {
      if (got[i] == CopyByte(i)) continue;
      throw RunError("Byte " + std::to_string(i) + " of a copy of " + std::to_string(bytes_) +
                     " bytes of app '" + app + "' is " + std::to_string(got[i]) + " instead of " +
                     std::to_string(CopyByte(i)) + ".");
    }
  }

 private:
  struct FreeHost {
    void operator()(void* data) const { cudaFreeHost(data); }
  };

  bool to_device_;
  size_t bytes_;
  DeviceMemory device_;
  std::unique_ptr<void, FreeHost> pinned_;
  std::vector<unsigned char> pageable_;
  unsigned char* host_ = nullptr;
};

class GraphTask final : public BoundTask {
 public:
  GraphTask(ChainPrograms& chains, std::string name) : chains_(chains), name_(std::move(name)) {}
  void BeginRun() override {}  // ChainPrograms::BeginRun clears the outputs of all graphs
  void Verify(const std::string& /*app*/) override { chains_.VerifyGraph(name_); }
  void AddRaw(CudaRawApp& raw) override {
    raw.AddGraph([this](void* stream) { chains_.Capture(name_, stream, 0); });
  }

 private:
  ChainPrograms& chains_;
  std::string name_;
};

class GemmTask final : public BoundTask {
 public:
  GemmTask(OpaqueGemm& gemm, bool opaque, int64_t count) : gemm_(gemm), count_(count) {
    binding_.declared_ns = OpaqueGemm::kDeclaredNs * count;
    if (opaque) {
      binding_.kind = GPUSHARE_TASK_OPAQUE;
      binding_.enqueue = &OpaqueGemm::Enqueue;
      binding_.enqueue_user = gemm.NewTask(count);
      return;
    }
    arguments_ = {gemm.gemm().a, gemm.gemm().weights, nullptr, gemm.gemm().d, 1.0F, 0.0F};
    binding_.arguments = &arguments_;
    binding_.arguments_size_bytes = sizeof(arguments_);
  }

  void BeginRun() override {}  // OpaqueGemm::BeginRun clears the output
  void Verify(const std::string& /*app*/) override { gemm_.Verify(); }
  void AddRaw(CudaRawApp& raw) override {
    if (raw_ == nullptr) raw_ = gemm_.NewTask(count_);
    raw.AddTask([task = raw_](void* stream) { OpaqueGemm::Enqueue(stream, task); });
  }

 private:
  OpaqueGemm& gemm_;
  int64_t count_;
  OpaqueGemm::Task* raw_ = nullptr;
  gpushare_library_arguments arguments_ = {};
};

}  // namespace

std::unique_ptr<BoundTask> MakeCatalogueTask(const BeKernel& kernel, int64_t block_tasks, int sms) {
  return std::make_unique<CatalogueTask>(kernel, block_tasks, sms);
}

std::unique_ptr<BoundTask> MakeCopyTask(const WorkItem& item) {
  return std::make_unique<CopyTask>(item);
}

std::unique_ptr<BoundTask> MakeGraphTask(ChainPrograms& chains, std::string name) {
  return std::make_unique<GraphTask>(chains, std::move(name));
}

std::unique_ptr<BoundTask> MakeGemmTask(OpaqueGemm& gemm, bool opaque, int64_t count) {
  return std::make_unique<GemmTask>(gemm, opaque, count);
}

}  // namespace gpushare::tool
