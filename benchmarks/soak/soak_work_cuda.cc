// Tasks of the soak on a GPU: the catalogue's kernels, graphs and opaque work made of them, copies
// to the device and back. Every kernel's answer is compared bit by bit (a checksum) with that of a
// bare launch of its original grid, which was compared with the reference; a copy's with its
// source.

#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/random.h"
#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/registration.h"
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

using benchmarks::Fail;
using benchmarks::Failure;
using benchmarks::Require;

// The soak reports a failure and goes on, so that each interface of it returns a sentence: the
// Failure's, or none.
template <class Step>
std::string SentenceOf(const Step& step) {
  try {
    step();
    return {};
  } catch (const Failure& failure) {
    return failure.what();
  }
}

// A workload of the catalogue, and the answer that it must give.
class Subject {
 public:
  Subject(Kind kind, double solo_ms, uint32_t seed) {
    const kernels::CatalogueKernel& kernel = benchmarks::KernelNamed(NamesOf(kind).catalogue);
    kernels::WorkloadOptions options;
    options.solo_ms = solo_ms;
    options.block_task_us = kernel.yields ? kStepsBlockTaskUs : kBlockTaskUs;
    // A yielding body needs a place of its own for every block task.
    options.ring_max = kernel.yields ? 0 : kRingMax;
    options.seed = seed;
    made_ = benchmarks::MakeTask(kernel, options);
    Clear();
    Launch(cudaStreamPerThread);
    benchmarks::Cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    expected_ = benchmarks::VerifiedChecksum(*made_.workload, kVerifySeconds);
  }

  void Clear() const { Require(made_.workload->ClearOutput()); }
  void Check() const {
    if (benchmarks::ChecksumOf(*made_.workload) == expected_) return;
    Fail("The output of '" + std::string(made_.workload->kernel().name) +
         "' is not that of a bare launch.");
  }
  // The original grid, on any stream, capturing ones too.
  void Launch(cudaStream_t stream) const { benchmarks::LaunchGrid(made_.task, stream); }

  const gpushare_kernel_variants& variants() const { return made_.task.variants; }
  const kernels::Workload& workload() const { return *made_.workload; }

 private:
  benchmarks::WorkloadTask made_;
  uint64_t expected_ = 0;
};

class KernelTask final : public Task {
 public:
  KernelTask(std::unique_ptr<Subject> subject, const Kernel& kernel)
      : subject_(std::move(subject)), kernel_(kernel) {}

  std::string Fill(TaskOptions& options) override {
    options.kernel = kernel_.get();
    kernels::FillTask(subject_->workload(), options);
    return SentenceOf([this] { subject_->Clear(); });
  }
  std::string Check(const gpushare_completion_record& record) override {
    // The original grid cannot lose a block task; the others report what they executed.
    const int64_t block_tasks = subject_->workload().block_tasks();
    if (record.form == GPUSHARE_FORM_WORKERS && record.block_tasks != block_tasks) {
      return "The record of '" + std::string(subject_->workload().kernel().name) + "' says " +
             std::to_string(record.block_tasks) + " block tasks, and the task has " +
             std::to_string(block_tasks) + ".";
    }
    return SentenceOf([this] { subject_->Check(); });
  }
  void Spoil() override {
    static_cast<void>(SentenceOf([this] { subject_->Clear(); }));
  }

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
      static_cast<void>(SentenceOf([stream, user] {
        static_cast<const Subject*>(user)->Launch(static_cast<cudaStream_t>(stream));
      }));
    };
    options.enqueue_user = subject_.get();
    return SentenceOf([this] { subject_->Clear(); });
  }
  std::string Check(const gpushare_completion_record&) override {
    return SentenceOf([this] { subject_->Check(); });
  }
  void Spoil() override {
    static_cast<void>(SentenceOf([this] { subject_->Clear(); }));
  }

 private:
  std::unique_ptr<Subject> subject_;
  const int64_t declared_ns_;
};

class GraphTask final : public Task {
 public:
  GraphTask(const Runtime& runtime, const std::string& name, double solo_ms, uint32_t seed) {
    for (const Kind kind : {Kind::kSincos, Kind::kMd5, Kind::kBlackScholes}) {
      subjects_.push_back(std::make_unique<Subject>(kind, solo_ms / kGraphNodes, seed++));
    }
    KernelOptions options;
    options.name = name.c_str();
    auto kernel = runtime.RegisterGraph(options, [this](void* stream, int32_t) {
      const std::string error = SentenceOf([&] {
        for (const auto& subject : subjects_) subject->Launch(static_cast<cudaStream_t>(stream));
      });
      return error.empty() ? 0 : 1;
    });
    if (!kernel.ok()) Fail(kernel.status().ToString());
    kernel_ = *kernel;
  }

  std::string Fill(TaskOptions& options) override {
    options.kernel = kernel_.get();
    return SentenceOf([this] {
      for (const auto& subject : subjects_) subject->Clear();
    });
  }
  std::string Check(const gpushare_completion_record&) override {
    const std::string error = SentenceOf([this] {
      for (const auto& subject : subjects_) subject->Check();
    });
    return error.empty() ? error : "In a graph: " + error;
  }
  void Spoil() override {
    static_cast<void>(SentenceOf([this] { subjects_[0]->Clear(); }));
  }

 private:
  std::vector<std::unique_ptr<Subject>> subjects_;
  Kernel kernel_;
};

// Buffers of a copy to the device and back. The content is another one in each job.
class CopyBuffers {
 public:
  CopyBuffers(bool pinned, uint32_t seed) : random_(seed) {
    if (pinned) {
      pinned_ = std::make_unique<benchmarks::MappedMemory>(2 * kCopyBytes);
      source_ = pinned_->as<unsigned char>();
    } else {
      pageable_.resize(2 * kCopyBytes);
      source_ = pageable_.data();
    }
    Require(device_.Allocate(kCopyBytes));
  }
  void Renew() {
    for (size_t i = 0; i < kCopyBytes; i += sizeof(uint64_t)) {
      const uint64_t bits = random_.Bits();
      std::memcpy(source_ + i, &bits, sizeof(bits));
    }
    std::memset(source_ + kCopyBytes, 0, kCopyBytes);
  }
  bool Equal() const { return std::memcmp(source_, source_ + kCopyBytes, kCopyBytes) == 0; }
  unsigned char* source() const { return source_; }
  unsigned char* destination() const { return source_ + kCopyBytes; }
  void* device() const { return device_.data(); }

 private:
  benchmarks::Random random_;
  std::unique_ptr<benchmarks::MappedMemory> pinned_;
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
    return SentenceOf([&] { MakeTasks(runtime, kind, solo_ms, seed, made); });
  }

  int64_t FreeDeviceBytes() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return 0;
    return static_cast<int64_t>(free_bytes);
  }

 private:
  void MakeTasks(const Runtime& runtime, Kind kind, double solo_ms, uint32_t seed,
                 std::unique_ptr<Task> (&made)[2]) {
    if (kind == Kind::kCopyPinned || kind == Kind::kCopyPageable) {
      const bool pageable = kind == Kind::kCopyPageable;
      auto buffers = std::make_shared<CopyBuffers>(!pageable, seed);
      made[0] = std::make_unique<CopyTask>(buffers, pageable, false);
      made[1] = std::make_unique<CopyTask>(buffers, pageable, true);
      return;
    }
    if (kind == Kind::kGraph) {
      const std::string name = "soak_graph_" + std::to_string(++graphs_);
      made[0] = std::make_unique<GraphTask>(runtime, name, solo_ms, seed);
      return;
    }
    auto subject = std::make_unique<Subject>(kind, solo_ms, seed);
    if (kind == Kind::kOpaque) {
      made[0] = std::make_unique<OpaqueTask>(std::move(subject), solo_ms);
      return;
    }
    Register(runtime, kind, *subject);
    made[0] = std::make_unique<KernelTask>(std::move(subject), kernels_[kind]);
  }

  void Register(const Runtime& runtime, Kind kind, const Subject& subject) {
    if (kernels_.count(kind) != 0) return;
    const std::string name = std::string("soak_") + NamesOf(kind).catalogue;
    KernelOptions options;
    options.name = name.c_str();
    kernels::FillOptions(subject.variants(), options);
    if (kind == Kind::kSincosSteps) options.yield_interval_ns = kYieldIntervalNs;
    auto kernel = runtime.RegisterKernel(options);
    if (!kernel.ok()) Fail(kernel.status().ToString());
    kernels_[kind] = *kernel;
  }

  std::map<Kind, Kernel> kernels_;
  int graphs_ = 0;
};

}  // namespace

std::unique_ptr<Work> MakeCudaWork(std::string* why) {
  *why = SentenceOf([] { benchmarks::OpenGpu(); });
  return why->empty() ? std::make_unique<CudaWork>() : nullptr;
}

}  // namespace gpushare::soak
