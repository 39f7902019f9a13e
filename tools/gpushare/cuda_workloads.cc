// Real programs behind the names of a scenario: the catalogue's kernels as BE work, chains of
// cuBLAS GEMMs as LC work, a GEMM as opaque work and as a library call, copies.
//
// Buffers live as long as the object; each task of an app has its own. Threads: one at a time; the
// enqueue callback of opaque work takes care of itself.

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/kernels/catalogue.h"
#ifdef GPUSHARE_TOOL_FUSED
#include "benchmarks/kernels/fused/fused_catalogue.h"
#endif
#include "tools/gpushare/cuda_blas.h"
#include "tools/gpushare/cuda_chain.h"
#include "tools/gpushare/cuda_kernels.h"
#include "tools/gpushare/cuda_opaque_gemm.h"
#include "tools/gpushare/cuda_raw.h"
#include "tools/gpushare/errors.h"
#include "tools/gpushare/limits.h"
#include "tools/gpushare/workloads.h"

namespace gpushare::tool {

namespace {

constexpr const char* kOpaqueGemm = "cublaslt_gemm";
constexpr const char* kLibraryGemm = "cublaslt_library_gemm";
// CPU time for the reference of one task's results, after each run.
constexpr double kVerifySeconds = 0.2;
constexpr int64_t kYieldIntervalNs = static_cast<int64_t>(1000 * kernels::kSincosStepUs);

// A name of a scenario, the catalogue's kernel behind it and the length of its block task.
struct BeKernel {
  const char* name;
  const char* kernel;
  double block_task_us;  // on an H200, 8 workers an SM
  bool yields = false;   // inside a block task, kYieldIntervalNs apart
};

constexpr BeKernel kBeKernels[] = {
    {"sincos", "sincos", 30},
    {"sincos_27us", "sincos", 27},
    {"sincos_267us", "sincos", 267},
    {"sincos_2700us", "sincos", 2700},
    {"sincos_2700us_yield", "sincos_steps", 2700, true},
    {"streaming", "streaming", 59},
    {"streaming_59us", "streaming", 59},
    {"ffma", "ffma", 30},
    {"stencil", "stencil", 59},
    {"black_scholes", "black_scholes", 50},
    {"md5", "md5", 50},
};

// The catalogue's other kernels by their own names, with their own block tasks.
std::vector<BeKernel> RestOfTheCatalogue() {
  std::vector<BeKernel> rest;
  for (const kernels::CatalogueKernel& kernel : kernels::Catalogue()) {
    const bool named =
        std::any_of(std::begin(kBeKernels), std::end(kBeKernels),
                    [&](const BeKernel& one) { return std::strcmp(one.name, kernel.name) == 0; });
    if (!named) rest.push_back({kernel.name, kernel.name, kernel.block_task_us, kernel.yields});
  }
  return rest;
}

const BeKernel* FindBeKernel(const std::string& name) {
  for (const BeKernel& kernel : kBeKernels) {
    if (name == kernel.name) return &kernel;
  }
  static const auto* const kRest =
      new std::vector<BeKernel>(RestOfTheCatalogue());  // NOLINT: lives as long as the program
  for (const BeKernel& kernel : *kRest) {
    if (name == kernel.name) return &kernel;
  }
  return nullptr;
}

bool IsGelu(const std::string& task) {
  const ChainFamily* family = FamilyOfTask(task);
  return family != nullptr &&
         std::any_of(family->layer.begin(), family->layer.end(),
                     [&](const ChainStep& step) { return step.gelu && task == step.task; });
}

void CheckKernels(const kernels::Status& status) {
  if (!status.ok()) throw RunError(status.message);
}

// The seeded byte of a copy's source.
unsigned char CopyByte(size_t index) {
  const uint64_t h = (index + 1) * 0x9E3779B97F4A7C15ULL;
  return static_cast<unsigned char>(h >> 56);
}

// --- what one task computes with -----------------------------------------------------------------

// One task of an app: what it is submitted with, and whether its result is right.
class BoundTask {
 public:
  virtual ~BoundTask() = default;
  virtual void BeginRun() = 0;
  virtual void Verify(const std::string& app) = 0;
  // The same task as a bare launch. The object outlives `raw`.
  virtual void AddRaw(CudaRawApp& raw) = 0;
  const TaskBinding& binding() const { return binding_; }

 protected:
  TaskBinding binding_;
};

class CatalogueTask final : public BoundTask {
 public:
  CatalogueTask(const BeKernel& kernel, int64_t block_tasks, int sms) {
    kernels::WorkloadOptions options;
    options.block_task_us = kernel.block_task_us;
    options.block_tasks = static_cast<uint32_t>(block_tasks);
    options.sms = sms;
    CheckKernels(kernels::MakeWorkload(*kernels::FindKernel(kernel.kernel), options, &workload_));
    const kernels::Grid grid = workload_->grid();
    binding_.block_tasks = workload_->block_tasks();
    binding_.grid_x = static_cast<int32_t>(grid.x);
    binding_.grid_y = static_cast<int32_t>(grid.y);
    binding_.grid_z = static_cast<int32_t>(grid.z);
    binding_.arguments = workload_->params();
    binding_.arguments_size_bytes = workload_->params_bytes();
  }

  void BeginRun() override { CheckKernels(workload_->ClearOutput()); }

  void AddRaw(CudaRawApp& raw) override {
    gpushare_kernel_variants variants = {};
    CheckCuda(workload_->kernel().variants(&variants), "Loading a kernel");
    raw.AddKernel(variants, binding_);
  }

  void Verify(const std::string& app) override {
    kernels::Verification verification;
    CheckKernels(workload_->Verify(kVerifySeconds, &verification));
    if (verification.wrong == 0 && verification.checked > 0) return;
    throw RunError("App '" + app + "' has " + std::to_string(verification.wrong) + " wrong of " +
                   std::to_string(verification.checked) + " checked results of the kernel '" +
                   workload_->kernel().name + "': " + verification.first_wrong);
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
    // Such a copy blocks its caller, who would be late for the next arrival.
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
  void BeginRun() override {}  // its captures begin together (ChainPrograms::BeginRun)
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

  void BeginRun() override {}  // as for graphs
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

// The tasks of one chain that an app submits one by one: whole layers, or a single task, whose
// input is then arbitrary and whose answer nobody checks (calibration).
class ChainOfTasks {
 public:
  ChainOfTasks(ChainPrograms& chains, const ChainFamily& family, const std::string& app,
               const std::vector<WorkItem>& items)
      : chains_(chains), family_(family) {
    const size_t per_layer = family.layer.size();
    if (items.size() == 1 && per_layer > 1) {
      BindSingle(items[0].kernel);
      return;
    }
    for (size_t i = 0; i < items.size(); ++i) {
      CheckItem(app, i, items[i], family.layer[i % per_layer]);
    }
    if (items.size() % per_layer != 0) {
      throw InputError("App '" + app + "' has a chain of " + std::to_string(items.size()) +
                       " tasks, and a layer of it has " + std::to_string(per_layer) + ".");
    }
    layers_ = static_cast<int>(items.size() / per_layer);
    chains.Prepare(family, layers_);
    buffers_ = chains.NewBuffers(family, layers_);
    for (size_t i = 0; i < items.size(); ++i) Bind(static_cast<int>(i));
  }

  bool single() const { return layers_ == 0; }
  const TaskBinding& binding(size_t index) const { return bindings_[index]; }
  void BeginRun() {
    if (!single()) chains_.Poison(family_, layers_, buffers_);
  }

  void AddRaw(CudaRawApp& raw, size_t index) {
    const auto at = static_cast<int>(index);
    if (!family_.layer[index % family_.layer.size()].gelu) {
      raw.AddGemm(chains_.GemmAt(family_, buffers_, at));
      return;
    }
    raw.AddTask([params = chains_.GeluAt(family_, buffers_, at)](void* stream) {
      CheckCuda(LaunchGelu(params, stream), "Launching GELU");
    });
  }

  void Verify(const std::string& app) {
    std::string sentence;
    const ChainPrograms::Answer answer = chains_.Check(family_, layers_, buffers_, &sentence);
    if (answer == ChainPrograms::Answer::kRight) return;
    if (answer == ChainPrograms::Answer::kUntouched) sentence = "Its tasks wrote no answer.";
    throw RunError("App '" + app + "': " + sentence);
  }

 private:
  void CheckItem(const std::string& app, size_t index, const WorkItem& item,
                 const ChainStep& step) const {
    if (item.kernel != step.task) {
      throw InputError("App '" + app + "' has the task '" + item.kernel + "' as number " +
                       std::to_string(index + 1) + " of its chain, where '" + step.task +
                       "' belongs.");
    }
    const int64_t blocks =
        step.gelu ? GeluBlocks(static_cast<uint64_t>(family_.rows * step.n)) : item.block_tasks;
    if (item.block_tasks == blocks) return;
    throw InputError("App '" + app + "' gives " + std::to_string(item.block_tasks) +
                     " block tasks for '" + item.kernel + "', and it has " +
                     std::to_string(blocks) + ".");
  }

  void BindSingle(const std::string& task) {
    const auto step =
        std::find_if(family_.layer.begin(), family_.layer.end(),
                     [&](const ChainStep& candidate) { return task == candidate.task; });
    buffers_ = chains_.NewBuffers(family_, 1);
    chains_.FillInputs(buffers_);
    Bind(static_cast<int>(step - family_.layer.begin()));
  }

  void Bind(int index) {
    TaskBinding binding;
    if (family_.layer[static_cast<size_t>(index) % family_.layer.size()].gelu) {
      const GeluParams& params = gelus_.emplace_back(chains_.GeluAt(family_, buffers_, index));
      binding.block_tasks = GeluBlocks(params.elements);
      binding.arguments = &params;
      binding.arguments_size_bytes = sizeof(params);
    } else {
      const Gemm gemm = chains_.GemmAt(family_, buffers_, index);
      const gpushare_library_arguments& arguments = gemms_.emplace_back(
          gpushare_library_arguments{gemm.a, gemm.weights, nullptr, gemm.d, 1.0F, 0.0F});
      binding.arguments = &arguments;
      binding.arguments_size_bytes = sizeof(arguments);
    }
    bindings_.push_back(binding);
  }

  ChainPrograms& chains_;
  const ChainFamily& family_;
  int layers_ = 0;
  ChainBuffers buffers_;
  std::deque<GeluParams> gelus_;  // addresses stay
  std::deque<gpushare_library_arguments> gemms_;
  std::vector<TaskBinding> bindings_;
};

// --- all of them ---------------------------------------------------------------------------------

class CudaWorkloads final : public Workloads {
 public:
  explicit CudaWorkloads(int ordinal) : ordinal_(ordinal) {
    CheckCuda(cudaSetDevice(ordinal), "Choosing the GPU");
    cudaDeviceProp properties = {};
    CheckCuda(cudaGetDeviceProperties(&properties, ordinal), "Asking for the GPU's properties");
    hardware_.gpu = properties.name;
    sms_ = properties.multiProcessorCount;
    hardware_.driver = DriverVersion();
  }

  // Freeing memory waits for the device: behind work that does not end, for ever.
  ~CudaWorkloads() override {
    if (!hung_) return;
    for (auto& [key, app] : apps_) {
      for (auto& task : app.tasks) static_cast<void>(task.release());
      static_cast<void>(app.chain.release());
    }
    static_cast<void>(chains_.release());
    static_cast<void>(gemm_.release());
  }
  CudaWorkloads(const CudaWorkloads&) = delete;
  CudaWorkloads& operator=(const CudaWorkloads&) = delete;

  std::vector<std::string> CatalogueNames() const override {
    std::vector<std::string> names;
    for (const kernels::CatalogueKernel& kernel : kernels::Catalogue()) {
      names.emplace_back(kernel.name);
    }
    return names;
  }

#ifdef GPUSHARE_TOOL_FUSED
  std::vector<FusedChoice> FusedOf(const std::vector<std::string>& names) override {
    const auto has = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::vector<FusedChoice> choices;
    for (const kernels::FusedCatalogueKernel& kernel : kernels::FusedCatalogue()) {
      // Direct fusion has no workers: it is a baseline of the benchmarks.
      if (kernel.form == GPUSHARE_FUSED_DIRECT) continue;
      if (!has(kernel.tensor_name) || !has(kernel.cuda_name)) continue;
      gpushare_fused_variants variants = {};
      CheckCuda(kernel.variants(&variants), "Loading a fused kernel");
      if (variants.blocks_per_sm == 0) continue;  // not on this device
      choices.push_back({kernel.name, kernel.tensor_name, kernel.cuda_name, variants.function,
                         static_cast<int32_t>(variants.tensor_blocks),
                         static_cast<int32_t>(variants.cuda_blocks),
                         static_cast<int32_t>(variants.threads_per_block),
                         static_cast<int32_t>(variants.dynamic_shared_bytes),
                         static_cast<int32_t>(variants.blocks_per_sm),
                         static_cast<int32_t>(variants.local_bytes)});
    }
    return choices;
  }
#endif

  bool CanRun(const std::string& kernel, bool /*in_profile*/) const override {
    return FindBeKernel(kernel) != nullptr || ChainPrograms::IsGraph(kernel) ||
           FamilyOfTask(kernel) != nullptr || kernel == kOpaqueGemm || kernel == kLibraryGemm;
  }

  bool CountsBlocks(const std::string& kernel, gpushare_task_kind /*kind*/) const override {
    return FindBeKernel(kernel) != nullptr || kernel == kOpaqueGemm || IsGelu(kernel);
  }

  bool FillKernel(const std::string& kernel, gpushare_task_kind /*kind*/,
                  gpushare_kernel_options& options) override {
    if (kernel == kOpaqueGemm) return false;
    if (const BeKernel* found = FindBeKernel(kernel); found != nullptr) {
      FillCatalogue(*found, options);
    } else if (ChainPrograms::IsGraph(kernel)) {
      FillGraph(kernel, options);
    } else if (kernel == kLibraryGemm) {
      FillLibrary(kernel, OpaqueGemm::kM, OpaqueGemm::kN, OpaqueGemm::kK, options);
    } else if (const ChainFamily* family = FamilyOfTask(kernel); family != nullptr) {
      FillChainTask(kernel, *family, options);
    } else {
      throw InputError("There is no program for the kernel '" + kernel + "' on this device.");
    }
    return true;
  }

  std::vector<TaskBinding> Bind(const std::string& app,
                                const std::vector<WorkItem>& tasks) override {
    App& bound = apps_[KeyOf(app, tasks)];
    if (bound.bindings.empty()) BindAll(app, tasks, bound);
    by_name_[app] = &bound;
    return bound.bindings;
  }

  void BeginRun() override {
    for (auto& [key, app] : apps_) {
      for (const auto& task : app.tasks) task->BeginRun();
      if (app.chain != nullptr) app.chain->BeginRun();
    }
    if (chains_ != nullptr) chains_->BeginRun();
    if (gemm_ != nullptr) gemm_->BeginRun();
  }

  bool Verify(const std::string& app, int64_t completed) override {
    if (completed == 0) return true;  // it was held all along, so nothing is wrong
    const App& bound = *by_name_.at(app);
    for (size_t i = 0; i < bound.tasks.size(); ++i) {
      // Each of the app's queues takes the tasks in turn: from so many on every one has run.
      const auto surely = static_cast<int64_t>(i) * kQueuesPerAppMax;
      if (completed > surely) bound.tasks[i]->Verify(app);
    }
    if (bound.chain == nullptr) return true;
    // A BE app may be stopped amid its chain; there is no answer then.
    if (bound.chain->single() || completed % static_cast<int64_t>(bound.bindings.size()) != 0) {
      return false;
    }
    bound.chain->Verify(app);
    return true;
  }

  HardwareFacts Hardware() const override { return hardware_; }

  bool HasRaw() const override { return true; }

  std::unique_ptr<RawApp> MakeRaw(const std::string& app, const std::vector<WorkItem>& tasks,
                                  const RawOptions& options) override {
    Bind(app, tasks);
    App& bound = *by_name_.at(app);
    auto raw = std::make_unique<CudaRawApp>(ordinal_, options, hung_);
    size_t in_chain = 0;
    size_t outside = 0;
    for (const WorkItem& item : tasks) {
      if (!item.is_copy() && FamilyOfTask(item.kernel) != nullptr) {
        bound.chain->AddRaw(*raw, in_chain++);
      } else {
        bound.tasks[outside++]->AddRaw(*raw);
      }
    }
    return raw;
  }

 private:
  struct App {
    std::vector<std::unique_ptr<BoundTask>> tasks;  // those outside the chain
    std::unique_ptr<ChainOfTasks> chain;
    std::vector<TaskBinding> bindings;  // by task of the app
  };

  static std::string KeyOf(const std::string& app, const std::vector<WorkItem>& tasks) {
    std::string key = app;
    for (const WorkItem& item : tasks) {
      key += "|" + item.kernel + "," + std::to_string(item.block_tasks) + "," +
             std::to_string(item.bytes) + "," + std::to_string(static_cast<int>(item.direction)) +
             "," + std::to_string(item.pinned);
    }
    return key;
  }

  static std::string DriverVersion() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return "";
    using Init = int (*)();
    using Version = int (*)(char*, unsigned);
    const auto init = reinterpret_cast<Init>(dlsym(library, "nvmlInit_v2"));
    const auto version = reinterpret_cast<Version>(dlsym(library, "nvmlSystemGetDriverVersion"));
    char text[80] = {};
    if (init == nullptr || version == nullptr || init() != 0) return "";
    return version(text, sizeof(text)) == 0 ? text : "";
  }

  ChainPrograms& Chains() {
    if (chains_ == nullptr) chains_ = std::make_unique<ChainPrograms>();
    return *chains_;
  }

  OpaqueGemm& TheGemm() {
    if (gemm_ == nullptr) {
      gemm_ = std::make_unique<OpaqueGemm>(Chains().stream(), Chains().weights_transposed());
    }
    return *gemm_;
  }

  static void FillCatalogue(const BeKernel& kernel, gpushare_kernel_options& options) {
    gpushare_kernel_variants variants = {};
    CheckCuda(kernels::FindKernel(kernel.kernel)->variants(&variants), "Loading a kernel");
    options.kind = GPUSHARE_TASK_KERNEL;
    options.original_function = variants.original_function;
    options.worker_function = variants.worker_function;
    options.slice_function = variants.slice_function;
    options.threads_per_block = static_cast<int32_t>(variants.threads_per_block);
    options.registers_per_thread = static_cast<int32_t>(variants.worker_registers);
    options.shared_memory_bytes =
        static_cast<int32_t>(variants.static_shared_bytes + variants.dynamic_shared_bytes);
    options.dynamic_shared_memory_bytes = static_cast<int32_t>(variants.dynamic_shared_bytes);
    options.workers_per_sm_max = static_cast<int32_t>(variants.workers_per_sm);
    options.evictable = GPUSHARE_CHOICE_YES;
    if (kernel.yields) options.yield_interval_ns = kYieldIntervalNs;
  }

  struct GraphUser {
    ChainPrograms* chains = nullptr;
    std::string name;
  };

  static int32_t CaptureGraph(void* user, void* stream, int32_t sms) {
    const auto* graph = static_cast<const GraphUser*>(user);
    try {
      return graph->chains->Capture(graph->name, stream, sms);
    } catch (...) {  // the library's own sentence says that the capture failed
      return -1;
    }
  }

  void FillGraph(const std::string& name, gpushare_kernel_options& options) {
    Chains().PrepareGraph(name);
    GraphUser& user = graph_users_[name];
    user = {&Chains(), name};
    options.kind = GPUSHARE_TASK_GRAPH;
    options.capture = &CudaWorkloads::CaptureGraph;
    options.capture_user = &user;
  }

  void FillLibrary(const std::string& name, int64_t m, int64_t n, int64_t k,
                   gpushare_kernel_options& options) {
    gpushare_library_call& call = library_calls_[name];
    call = GPUSHARE_LIBRARY_CALL_INIT;
    call.operation = GPUSHARE_LIBRARY_MATMUL;
    call.type = GPUSHARE_BFLOAT16;
    call.m = m;
    call.n = n;
    call.k = k;
    call.transpose_b = Chains().weights_transposed() ? 1 : 0;
    options.kind = GPUSHARE_TASK_LIBRARY;
    options.library = &call;
  }

  void FillChainTask(const std::string& name, const ChainFamily& family,
                     gpushare_kernel_options& options) {
    for (const ChainStep& step : family.layer) {
      if (name != step.task) continue;
      if (!step.gelu) return FillLibrary(name, family.rows, step.n, step.k, options);
      CheckCuda(GeluFunction(&options.original_function), "Loading GELU");
      options.kind = GPUSHARE_TASK_KERNEL;
      options.threads_per_block = static_cast<int32_t>(kGeluThreads);
      options.evictable = GPUSHARE_CHOICE_NO;
    }
  }

  void BindAll(const std::string& app, const std::vector<WorkItem>& tasks, App& bound) {
    BindChain(app, tasks, bound);
    size_t in_chain = 0;
    for (const WorkItem& item : tasks) {
      if (!item.is_copy() && FamilyOfTask(item.kernel) != nullptr) {
        bound.bindings.push_back(bound.chain->binding(in_chain++));
        continue;
      }
      bound.tasks.push_back(NewTask(app, item));
      bound.bindings.push_back(bound.tasks.back()->binding());
    }
  }

  void BindChain(const std::string& app, const std::vector<WorkItem>& tasks, App& bound) {
    const ChainFamily* family = nullptr;
    std::vector<WorkItem> steps;
    for (const WorkItem& item : tasks) {
      const ChainFamily* own = item.is_copy() ? nullptr : FamilyOfTask(item.kernel);
      if (own == nullptr) continue;
      if (family != nullptr && family != own) {
        throw InputError("App '" + app + "' mixes tasks of the chains '" + family->name +
                         "' and '" + own->name + "'.");
      }
      family = own;
      steps.push_back(item);
    }
    if (family != nullptr) {
      bound.chain = std::make_unique<ChainOfTasks>(Chains(), *family, app, steps);
    }
  }

  std::unique_ptr<BoundTask> NewTask(const std::string& app, const WorkItem& item) {
    if (item.is_copy()) return std::make_unique<CopyTask>(item);
    if (const BeKernel* kernel = FindBeKernel(item.kernel); kernel != nullptr) {
      // The claim counter has 32 bits, and workers claim past the end.
      constexpr int64_t kBlockTasksMax = int64_t{1} << 31;
      if (item.block_tasks > kBlockTasksMax) {
        throw InputError("App '" + app + "' asks for " + std::to_string(item.block_tasks) +
                         " block tasks, and the limit on this device is " +
                         std::to_string(kBlockTasksMax) + ".");
      }
      return std::make_unique<CatalogueTask>(*kernel, item.block_tasks, sms_);
    }
    if (ChainPrograms::IsGraph(item.kernel)) {
      Chains().PrepareGraph(item.kernel);
      return std::make_unique<GraphTask>(Chains(), item.kernel);
    }
    const bool opaque = item.kernel == kOpaqueGemm;
    const int64_t count =
        opaque ? std::max<int64_t>(
                     1, (item.block_tasks + OpaqueGemm::kBlockTasks - 1) / OpaqueGemm::kBlockTasks)
               : 1;
    return std::make_unique<GemmTask>(TheGemm(), opaque, count);
  }

  int ordinal_;
  HardwareFacts hardware_;
  int sms_ = 0;
  bool hung_ = false;  // work without the library that does not end
  std::unique_ptr<ChainPrograms> chains_;
  std::unique_ptr<OpaqueGemm> gemm_;
  std::map<std::string, GraphUser> graph_users_;  // addresses stay, as in all maps here
  std::map<std::string, gpushare_library_call> library_calls_;
  std::map<std::string, App> apps_;
  std::map<std::string, App*> by_name_;  // what Bind was last called with
};

}  // namespace

std::unique_ptr<Workloads> MakeCudaWorkloads(int ordinal) {
  return std::make_unique<CudaWorkloads>(ordinal);
}

}  // namespace gpushare::tool
