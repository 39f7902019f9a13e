// The Workloads of a GPU: real programs behind the names of a scenario. Kernels of the catalogue
// are BE work, chains of cuBLAS GEMMs are LC work; a GEMM is opaque work or a library call; copies.
//
// Buffers live as long as the object; each task of an app has its own. Threads: one at a time; the
// enqueue callback of opaque work has its own lock.

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#ifdef GPUSHARE_TOOL_FUSED
#include "benchmarks/kernels/fused/fused_catalogue.h"
#endif
#include "benchmarks/kernels/registration.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/cuda/be_kernels.h"
#include "tools/gpushare/cuda/blas.h"
#include "tools/gpushare/cuda/chain.h"
#include "tools/gpushare/cuda/chain_tasks.h"
#include "tools/gpushare/cuda/kernels.h"
#include "tools/gpushare/cuda/library_shapes.h"
#include "tools/gpushare/cuda/opaque_gemm.h"
#include "tools/gpushare/cuda/raw.h"
#include "tools/gpushare/cuda/sized_queries.h"
#include "tools/gpushare/cuda/tasks.h"
#include "tools/gpushare/workloads/drawn_shapes.h"
#include "tools/gpushare/workloads/library_shapes.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

namespace {

constexpr const char* kOpaqueGemm = "cublaslt_gemm";
constexpr const char* kLibraryGemm = "cublaslt_library_gemm";

std::vector<LibraryShape> ShapesOf(ShapeSet set) {
  switch (set) {
    case ShapeSet::kKnown:
      return ListLibraryShapes();
    case ShapeSet::kDrawn:
      return ListDrawnShapes();
    case ShapeSet::kPlaced:
      return ListPlacedShapes();
    case ShapeSet::kBlind:
      return ListBlindShapes();
  }
  return {};
}

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

  // After a hang nothing is freed, because that would wait for work that never ends.
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

  const std::vector<LibraryShape>& LibraryShapes(ShapeSet set) override {
    std::unique_ptr<CudaLibraryShapes>& shapes = shapes_[set];
    if (shapes == nullptr) {
      shapes = std::make_unique<CudaLibraryShapes>(ShapesOf(set));
    }
    return shapes->shapes();
  }

  const std::vector<GraphChoice>& SizedQueries() override {
    if (queries_ == nullptr) queries_ = std::make_unique<CudaSizedQueries>();
    return queries_->graphs();
  }

#ifdef GPUSHARE_TOOL_FUSED
  std::vector<FusedChoice> FusedOf(const std::vector<std::string>& names) override {
    const auto has = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::vector<FusedChoice> choices;
    for (const kernels::FusedCatalogueKernel& kernel : kernels::FusedCatalogue()) {
      // The direct form has no workers; it is a baseline of the benchmarks.
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
    if (completed == 0) return true;  // the app was held all the time: there is nothing to check
    const App& bound = *by_name_.at(app);
    for (size_t i = 0; i < bound.tasks.size(); ++i) {
      // Each of the app's queues takes the tasks in turn. Above this number task i has run.
      const auto surely = static_cast<int64_t>(i) * kQueuesPerAppMax;
      if (completed > surely) bound.tasks[i]->Verify(app);
    }
    if (bound.chain == nullptr) return true;
    // A BE app may be stopped in the middle of its chain, which then has no result.
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
    std::vector<std::unique_ptr<BoundTask>> tasks;  // tasks outside the chain
    std::unique_ptr<ChainOfTasks> chain;
    std::vector<TaskBinding> bindings;  // one for each task of the app
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
    kernels::FillOptions(variants, options);
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
    } catch (...) {  // the library's message says that the capture failed
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
    if (item.is_copy()) return MakeCopyTask(item);
    if (const BeKernel* kernel = FindBeKernel(item.kernel); kernel != nullptr) {
      // The claim counter has 32 bits, and workers increment it past the last block task.
      constexpr int64_t kBlockTasksMax = int64_t{1} << 31;
      if (item.block_tasks > kBlockTasksMax) {
        throw InputError("App '" + app + "' asks for " + std::to_string(item.block_tasks) +
                         " block tasks, and the limit on this device is " +
                         std::to_string(kBlockTasksMax) + ".");
      }
      return MakeCatalogueTask(*kernel, item.block_tasks, sms_);
    }
    if (ChainPrograms::IsGraph(item.kernel)) {
      Chains().PrepareGraph(item.kernel);
      return MakeGraphTask(Chains(), item.kernel);
    }
    const bool opaque = item.kernel == kOpaqueGemm;
    const int64_t count =
        opaque ? std::max<int64_t>(
                     1, (item.block_tasks + OpaqueGemm::kBlockTasks - 1) / OpaqueGemm::kBlockTasks)
               : 1;
    return MakeGemmTask(TheGemm(), opaque, count);
  }

  int ordinal_;
  HardwareFacts hardware_;
  int sms_ = 0;
  bool hung_ = false;  // a bare launch does not end
  std::unique_ptr<ChainPrograms> chains_;
  std::unique_ptr<OpaqueGemm> gemm_;
  std::map<ShapeSet, std::unique_ptr<CudaLibraryShapes>> shapes_;
  std::unique_ptr<CudaSizedQueries> queries_;
  // Maps, because others hold the addresses of their values.
  std::map<std::string, GraphUser> graph_users_;
  std::map<std::string, gpushare_library_call> library_calls_;
  std::map<std::string, App> apps_;
  std::map<std::string, App*> by_name_;  // the tasks of the last Bind for each app
};

}  // namespace

std::unique_ptr<Workloads> MakeCudaWorkloads(int ordinal) {
  return std::make_unique<CudaWorkloads>(ordinal);
}

}  // namespace gpushare::tool
