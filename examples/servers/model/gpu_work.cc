// The work on a GPU: matrix products of libgpushare_kernels, as a captured chain for the model and
// in their evictable form for the BE kernel. Needs no CUDA toolkit.
//
// A product with the matrix P gives its left operand with the columns rotated by one inside groups
// of kValues columns. So the first kValues numbers of the first row come back rotated by the number
// of products. bf16 holds them exactly, and each sum has one term that is not zero.
#include <gpushare/kernels.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/kernels/cuda_driver.h"
#include "examples/servers/model/work.h"

namespace gpushare::example {
namespace {

constexpr int64_t kRows = 256;  // of the model's matrices
constexpr int64_t kSide = 1024;
constexpr int kProbeNodes = 8;
constexpr int kProbeRuns = 50;
constexpr int kNodesMax = 4096;
constexpr int64_t kBeRows = 8192;
constexpr int64_t kBeColumns = 8192;
constexpr int64_t kBeDepth = 1024;
constexpr uint16_t kOne = 0x3F80;  // 1 as bf16

void CheckCuda(int code, const char* step) {
  if (code != 0)
    throw std::runtime_error(std::string(step) + " fails with CUDA error " + std::to_string(code) +
                             ".");
}

void CheckKernels(gpushare_kernels_status status) {
  if (status != GPUSHARE_KERNELS_OK)
    throw std::runtime_error(gpushare_kernels_last_error_message());
}

void* AsPointer(device_pointer pointer) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
}

// One kind of matrix product.
struct Gemm {
  uint32_t index = 0;
  gpushare_kernel_variants variants = {};

  explicit Gemm(const char* name) {
    CheckKernels(gpushare_kernels_find(name, &index));
    CheckKernels(gpushare_kernels_variants(index, &variants));
  }

  gpushare_kernels_task Pack(void* a, void* b, void* c, int64_t m, int64_t n, int64_t k) const {
    gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;
    gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
    params.a = a;
    params.b = b;
    params.c = c;
    params.m = m;
    params.n = n;
    params.k = k;
    CheckKernels(gpushare_kernels_pack_gemm(index, &params, &task));
    return task;
  }
};

// Owns the device memory and the pinned memory of its work, which has ended when it ends.
class GpuWork : public Work {
 public:
  GpuWork() {
    if (open_cuda_driver(&cuda_) != 0) throw std::runtime_error("There is no GPU here.");
    gemm_ = std::make_unique<Gemm>("gemm_mma");
  }

  // On any thread. A failure says that the driver has ended, and its memory with it.
  ~GpuWork() override {
    if (cuda_.context_set(cuda_.context) != 0) return;
    for (const device_pointer pointer : device_memory_) cuda_.release(pointer);
    for (void* const memory : host_memory_) cuda_.release_host(memory);
  }
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;

  Kernel RegisterModel(const Runtime& runtime, const char* name, int64_t graph_ns) override {
    for (void*& matrix : matrices_) matrix = Zeros(kRows * kSide);
    void* const rotation = Rotation();
    const std::array<std::array<size_t, 2>, 3> steps = {{{0, 1}, {1, 2}, {2, 1}}};
    for (size_t i = 0; i < steps.size(); ++i) {
      products_[i] = gemm_->Pack(matrices_[steps[i][0]], rotation, matrices_[steps[i][1]], kRows,
                                 kSide, kSide);
    }
    const int64_t probe_ns = Probe(runtime);
    nodes_ = static_cast<int>(std::clamp<int64_t>(
        std::llround(static_cast<double>(graph_ns) * kProbeNodes / static_cast<double>(probe_ns)),
        1, kNodesMax));
    return RegisterChain(runtime, name, true, nodes_, probe_ns * nodes_ / kProbeNodes);
  }

  Kernel RegisterBe(const Runtime& runtime, const char* name) override {
    be_task_ = gemm_->Pack(Noise(kBeRows * kBeDepth), Noise(kBeColumns * kBeDepth),
                           Zeros(kBeRows * kBeColumns), kBeRows, kBeColumns, kBeDepth);
    const gpushare_kernel_variants& variants = gemm_->variants;
    SimulationRecord guess;
    guess.block_task_ns = 30'000;  // until the library has measured it
    KernelOptions options;
    options.name = name;
    options.evictable = GPUSHARE_CHOICE_YES;
    options.simulation = &guess;
    options.original_function = variants.original_function;
    options.worker_function = variants.worker_function;
    options.slice_function = variants.slice_function;
    options.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    options.registers_per_thread = static_cast<int32_t>(variants.worker_registers);
    options.shared_memory_bytes =
        static_cast<int32_t>(variants.static_shared_bytes + variants.dynamic_shared_bytes);
    options.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
    options.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
    return runtime.RegisterKernel(options).value();
  }

  TaskOptions BeTask() const override {
    TaskOptions task;
    task.block_tasks = be_task_.block_tasks;
    task.grid_x = be_task_.grid_x;
    task.grid_y = be_task_.grid_y;
    task.grid_z = be_task_.grid_z;
    task.arguments = be_task_.arguments;
    task.arguments_size_bytes = be_task_.arguments_size_bytes;
    return task;
  }

  void* input() const override { return matrices_[0]; }
  void* output() const override { return matrices_[nodes_ % 2 == 1 ? 1 : 2]; }

  void* HostMemory(size_t bytes) override {
    void* memory = nullptr;
    CheckCuda(cuda_.allocate_host(&memory, bytes), "Allocating pinned memory");
    host_memory_.push_back(memory);
    return memory;
  }

  int Shift() const override { return nodes_ % kValues; }

 private:
  void* Zeros(int64_t count) {
    device_pointer pointer = 0;
    const size_t bytes = static_cast<size_t>(count) * sizeof(uint16_t);
    CheckCuda(cuda_.allocate(&pointer, bytes), "Allocating device memory");
    device_memory_.push_back(pointer);
    CheckCuda(cuda_.fill(pointer, 0, bytes), "Clearing device memory");
    CheckCuda(cuda_.synchronize(nullptr), "Clearing device memory");
    return AsPointer(pointer);
  }

  void* Upload(const std::vector<uint16_t>& values) {
    void* const pointer = Zeros(static_cast<int64_t>(values.size()));
    CheckCuda(cuda_.upload(static_cast<device_pointer>(reinterpret_cast<uintptr_t>(pointer)),
                           values.data(), values.size() * sizeof(uint16_t)),
              "Uploading a matrix");
    return pointer;
  }

  // Numbers from -2 to 2: products of zeros would take less power than those of an application.
  void* Noise(int64_t count) {
    std::vector<uint16_t> values(static_cast<size_t>(count));
    std::minstd_rand random(1);
    for (uint16_t& value : values) {
      value = static_cast<uint16_t>((random() & 1U) << 15U | (0x3F00U + (random() >> 8U) % 0x100U));
    }
    return Upload(values);
  }

  // [n][k]: column n of a product is column k of the left operand, the one before it in its group.
  void* Rotation() {
    std::vector<uint16_t> matrix(static_cast<size_t>(kSide * kSide));
    for (int64_t n = 0; n < kSide; ++n) {
      const int64_t k = n / kValues * kValues + (n + kValues - 1) % kValues;
      matrix[static_cast<size_t>(n * kSide + k)] = kOne;
    }
    return Upload(matrix);
  }

  // The first product reads matrix 0; the others go to and fro between 1 and 2.
  int32_t Capture(void* stream, int nodes) {
    for (int node = 0; node < nodes; ++node) {
      gpushare_kernels_task& task = products_[node == 0 ? 0 : (node % 2 == 1 ? 1 : 2)];
      void* arguments[] = {task.arguments};
      const int code =
          cuda_.launch(gemm_->variants.original_function, static_cast<unsigned>(task.grid_x),
                       static_cast<unsigned>(task.grid_y), static_cast<unsigned>(task.grid_z),
                       gemm_->variants.threads_per_block, 1, 1,
                       gemm_->variants.dynamic_shared_bytes, stream, arguments, nullptr);
      if (code != 0) return code;
    }
    return 0;
  }

  Kernel RegisterChain(const Runtime& runtime, const char* name, bool measured, int nodes,
                       int64_t solo_ns) {
    KernelOptions options;
    options.name = name;
    options.solo_ns = solo_ns;
    // The model may be confined to the SMs on which it is as fast.
    options.measure_places = measured ? 1 : 0;
    return runtime
        .RegisterGraph(options, [&](void* stream, int32_t) { return Capture(stream, nodes); })
        .value();
  }

  // Median time of a short chain, by the device.
  int64_t Probe(const Runtime& runtime) {
    AppOptions options;
    options.name = "probe";
    options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
    const Queue queue = runtime.CreateApp(options).value().CreateQueue().value();
    const Kernel chain = RegisterChain(runtime, "probe", false, kProbeNodes, 100'000);
    TaskOptions task;
    task.kernel = chain.get();
    std::vector<int64_t> times;
    for (int i = 0; i < kProbeRuns; ++i) {
      const Ticket ticket = queue.SubmitLc(task).value();
      if (const Status status = ticket.Wait(); !status.ok()) throw Error(status);
      const CompletionRecord record = ticket.Record().value();
      if (record.verdict != GPUSHARE_VERDICT_OK)
        throw std::runtime_error("The model does not run.");
      times.push_back(record.start_ns > 0 ? record.end_ns - record.start_ns
                                          : record.complete_ns - record.launch_ns);
    }
    std::nth_element(times.begin(), times.begin() + kProbeRuns / 2, times.end());
    return std::max<int64_t>(times[kProbeRuns / 2], 1'000);
  }

  cuda_driver cuda_ = {};
  std::vector<device_pointer> device_memory_;
  std::vector<void*> host_memory_;
  std::unique_ptr<Gemm> gemm_;
  std::array<void*, 3> matrices_ = {};
  std::array<gpushare_kernels_task, 3> products_ = {};
  gpushare_kernels_task be_task_ = {};
  int nodes_ = 1;
};

}  // namespace

std::unique_ptr<Work> MakeGpuWork() { return std::make_unique<GpuWork>(); }

}  // namespace gpushare::example
