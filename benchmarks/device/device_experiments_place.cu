// smset: the SMs of each group and GPC. graph_place: which graphs stay inside a green context, and
// what unions of groups cost. Kernels record the %smid that they ran on.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "benchmarks/device/device_experiments.h"

namespace experiments {
namespace {

constexpr int kSmsMax = 1024;
constexpr size_t kMemsetBytes = size_t{256} << 20;
constexpr int kClusterBlocks = 8;

// Enough blocks to reach every SM: each stays 20 us.
__global__ void __launch_bounds__(256) MarkSm(uint32_t* seen) {
  const uint64_t begin = GlobalTimer();
  if (threadIdx.x == 0) seen[SmId()] = 1;
  while (GlobalTimer() - begin < 20'000) {
  }
}

// One block an SM (200 KB of shared memory); blocks of a cluster are in one GPC.
__global__ void __cluster_dims__(kClusterBlocks, 1, 1) MarkCluster(uint32_t* sm_of_block) {
  const uint64_t begin = GlobalTimer();
  if (threadIdx.x == 0) sm_of_block[blockIdx.x] = SmId();
  while (GlobalTimer() - begin < 20'000) {
  }
}

struct Marks {
  uint32_t* seen = OnDevice<uint32_t>(kSmsMax);
  void Clear() const {
    MUST(cudaMemset(seen, 0, kSmsMax * sizeof(uint32_t)));
    MUST(cudaDeviceSynchronize());  // the launches to come are on streams that do not wait for it
  }
  std::set<int> Read() const {
    std::vector<uint32_t> host(kSmsMax);
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host.data(), seen, kSmsMax * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    std::set<int> sms;
    for (int i = 0; i < kSmsMax; ++i) {
      if (host[i] != 0) sms.insert(i);
    }
    return sms;
  }
};

// 0-7,16-17
std::string Ranges(const std::set<int>& numbers) {
  std::string text;
  for (auto it = numbers.begin(); it != numbers.end();) {
    const int first = *it;
    int last = first;
    while (++it != numbers.end() && *it == last + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

void LaunchMark(const Marks& marks, cudaStream_t stream) {
  MarkSm<<<8 * SmCount(), 256, 0, stream>>>(marks.seen);
}

std::set<int> SmsOf(const Driver& driver, const Place& place, const Marks& marks) {
  const cudaStream_t stream = MakeStream(driver, place, 0);
  marks.Clear();
  LaunchMark(marks, stream);
  MUST(cudaGetLastError());
  std::set<int> sms = marks.Read();
  MUST(cudaStreamDestroy(stream));
  return sms;
}

// SMs that a cluster ever shared, joined: the GPCs.
void ReportGpcs() {
  constexpr int kClusters = 16;
  constexpr int kShared = 200 * 1024;
  MUST(cudaFuncSetAttribute(MarkCluster, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  uint32_t* const sm_of_block = OnDevice<uint32_t>(kClusters * kClusterBlocks);
  std::vector<int> root(kSmsMax);
  std::iota(root.begin(), root.end(), 0);
  std::function<int(int)> find = [&](int sm) { return root[sm] == sm ? sm : find(root[sm]); };
  std::set<int> reached;
  for (int round = 0; round < 60; ++round) {
    MarkCluster<<<kClusters * kClusterBlocks, 32, kShared>>>(sm_of_block);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    std::vector<uint32_t> host(kClusters * kClusterBlocks);
    MUST(cudaMemcpy(host.data(), sm_of_block, host.size() * sizeof(uint32_t),
                    cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < host.size(); ++i) {
      const int sm = static_cast<int>(host[i]);
      reached.insert(sm);
      root[find(sm)] = find(static_cast<int>(host[i / kClusterBlocks * kClusterBlocks]));
    }
  }
  std::map<int, std::set<int>> gpcs;
  for (const int sm : reached) gpcs[find(sm)].insert(sm);
  Json json;
  for (const auto& [first, sms] : gpcs) {
    Line("GPC (joined by clusters of %d): %2zu SMs: %s", kClusterBlocks, sms.size(),
         Ranges(sms).c_str());
    json.Set(std::to_string(*sms.begin()), Ranges(sms));
  }
  SetAnswer("gpcs_by_first_sm", json);
}

// --- Unions ----------------------------------------------------------------------------------

int64_t FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  MUST(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

Json Describe(const Place& place) {
  Json json;
  json.Set("code", static_cast<int>(place.code)).Set("failed", place.failed);
  return json.Set("sms", place.sms).Set("create_us", place.create_us);
}

void ReportUnions(const Driver& driver, const Split& split, const Marks& marks) {
  const int groups = static_cast<int>(split.groups.size());
  struct Case {
    const char* name;
    int first, count;
    bool remainder;
  };
  const Case cases[] = {{"one_group", 0, 1, false},
                        {"two_groups", 0, 2, false},
                        {"eight_groups", 0, 8, false},
                        {"all_groups", 0, groups, false},
                        {"one_group_and_remainder", 0, 1, true},
                        {"ten_groups_and_remainder", 0, 10, true},
                        {"all_groups_and_remainder", 0, groups, true},
                        {"remainder_alone", 0, 0, true}};
  Json json;
  for (const Case& item : cases) {
    const Place place = MakePlace(driver, split, item.first, item.count, item.remainder);
    Json described = Describe(place);
    size_t seen = 0;
    if (place.code == CUDA_SUCCESS) {
      const std::set<int> sms = SmsOf(driver, place, marks);
      seen = sms.size();
      described.Set("sms_seen", seen).Set("smids", Ranges(sms));
      MUST(driver.cuGreenCtxDestroy(place.green));
    }
    Line("union %-26s code %d %s SMs granted %d, seen %zu, made in %.0f us", item.name,
         static_cast<int>(place.code), place.failed, place.sms, seen, place.create_us);
    json.Set(item.name, described);
  }
  // Not contiguous: the even groups.
  std::vector<CUdevResource> even;
  for (int i = 0; i < groups; i += 2) even.push_back(split.groups[i]);
  const Place place = MakePlace(driver, even);
  Line("union of the even groups: code %d, SMs granted %d", static_cast<int>(place.code),
       place.sms);
  json.Set("even_groups", Describe(place));
  if (place.code == CUDA_SUCCESS) MUST(driver.cuGreenCtxDestroy(place.green));
  SetAnswer("unions", json);
}

// Groups [0, k) with the remainder, groups [k, n): all at once, each with a stream that ran a
// kernel.
void ReportNestedSplits(const Driver& driver, const Split& split, const Marks& marks) {
  const int groups = static_cast<int>(split.groups.size());
  const int64_t free_before = FreeBytes();
  std::vector<Place> places;
  std::vector<double> create_us, granted, seen, stream_us;
  int refused = 0;
  for (int k = 1; k < groups; ++k) {
    places.push_back(MakePlace(driver, split, 0, k, true));
    places.push_back(MakePlace(driver, split, k, groups - k, false));
  }
  const int64_t free_made = FreeBytes();
  for (const Place& place : places) {
    create_us.push_back(place.create_us);
    granted.push_back(place.sms);
    if (place.code != CUDA_SUCCESS) {
      ++refused;
      continue;
    }
    const int64_t start = NowNs();
    const cudaStream_t stream = MakeStream(driver, place, 0);
    stream_us.push_back(Us(NowNs() - start));
    marks.Clear();
    LaunchMark(marks, stream);
    MUST(cudaGetLastError());
    seen.push_back(static_cast<double>(marks.Read().size()));
    MUST(cudaStreamDestroy(stream));
  }
  const int64_t free_used = FreeBytes();
  const double total_us = std::accumulate(create_us.begin(), create_us.end(), 0.0);
  Json json;
  json.Set("green_contexts", places.size()).Set("refused", refused);
  json.Set("create_us_total", total_us).Set("create_us", create_us).Set("stream_us", stream_us);
  json.Set("sms_granted", granted).Set("sms_seen", seen);
  json.Set("memory_made_bytes", free_before - free_made);
  json.Set("memory_used_bytes", free_before - free_used);
  SetAnswer("nested_splits", json);
  Line("%zu green contexts at once: %d refused, %.1f ms, %.1f MiB made, %.1f MiB after use",
       places.size(), refused, total_us * 1e-3,
       static_cast<double>(free_before - free_made) / (1 << 20),
       static_cast<double>(free_before - free_used) / (1 << 20));
  for (const Place& place : places) {
    if (place.green != nullptr) MUST(driver.cuGreenCtxDestroy(place.green));
  }
}

// --- Graphs ----------------------------------------------------------------------------------

class GraphCases {
 public:
  GraphCases(const Driver& driver, const Place& place)
      : driver_(driver), place_(place), expected_(SmsOf(driver, place, marks_)) {
    MUST(driver_.cuCtxGetCurrent(&primary_context_));
    primary_ = MakeStream(0);
    green_ = MakeStream(driver_, place_, 0);
    buffer_ = OnDevice<char>(1 << 20);
    cudaKernel_t kernel = nullptr;
    MUST(cudaGetKernel(&kernel, reinterpret_cast<const void*>(MarkSm)));
    kernel_ = reinterpret_cast<CUkernel>(kernel);
  }

  void Run() {
    Line("the place has %zu SMs: %s", expected_.size(), Ranges(expected_).c_str());
    Put("place_sms", static_cast<double>(expected_.size()));
    PlainLaunches();
    CapturedAnywhere();
    Rebound();
    MemsetGraph();
  }

 private:
  // Sets the green context current for a scope, and the primary one again.
  struct Current {
    Current(const Driver& driver, CUcontext inside, CUcontext after)
        : driver(driver), after(after), code(driver.cuCtxSetCurrent(inside)) {}
    ~Current() { driver.cuCtxSetCurrent(after); }
    const Driver& driver;
    CUcontext after;
    CUresult code;
  };

  // At once, so that a later failure does not lose it.
  template <typename Value>
  static void Put(const std::string& name, const Value& value) {
    SetAnswer("graph/" + name, value);
  }

  void Tell(const std::string& name, int code, const std::string& step) {
    const std::set<int> sms = marks_.Read();
    const bool confined =
        !sms.empty() && std::includes(expected_.begin(), expected_.end(), sms.begin(), sms.end());
    Json json;
    json.Set("code", code).Set("failed", step).Set("sms_seen", sms.size());
    json.Set("confined", confined ? 1 : 0);
    Put(name, json);
    Line("%-46s SMs seen %3zu  %s%s%s", name.c_str(), sms.size(),
         code != 0 ? "REFUSED by " : (confined ? "confined" : "NOT confined"), step.c_str(),
         code != 0 ? (" with " + std::to_string(code)).c_str() : "");
    cudaGetLastError();  // an error that was refused is no longer of interest
  }

  void PlainLaunches() {
    const struct {
      const char* name;
      bool green_stream, green_current;
    } cases[] = {{"runtime_launch_primary_current_green_stream", true, false},
                 {"runtime_launch_green_current_green_stream", true, true},
                 {"runtime_launch_green_current_primary_stream", false, true}};
    for (const auto& item : cases) {
      marks_.Clear();
      const Current current(driver_, item.green_current ? place_.context : primary_context_,
                            primary_context_);
      LaunchMark(marks_, item.green_stream ? green_ : primary_);
      const cudaError_t code = cudaGetLastError();
      MUST(driver_.cuCtxSetCurrent(primary_context_));
      Tell(item.name, code, code == cudaSuccess ? "" : "cudaLaunchKernel");
    }
    DriverLaunch("driver_launch_primary_function_green_stream", false, green_);
    DriverLaunch("driver_launch_green_function_green_stream", true, green_);
    DriverLaunch("driver_launch_green_function_primary_stream", true, primary_);
  }

  // A CUfunction as cuKernelGetFunction answers with one context or the other current.
  CUresult FunctionOf(bool green, CUfunction* function) {
    const Current current(driver_, green ? place_.context : primary_context_, primary_context_);
    return driver_.cuKernelGetFunction(function, kernel_);
  }

  void DriverLaunch(const char* name, bool green_function, cudaStream_t stream) {
    marks_.Clear();
    CUfunction function = nullptr;
    CUresult code = FunctionOf(green_function, &function);
    if (code != CUDA_SUCCESS) return Tell(name, code, "cuKernelGetFunction");
    uint32_t* seen = marks_.seen;
    void* arguments[] = {&seen};
    code = driver_.cuLaunchKernel(function, 8 * SmCount(), 1, 1, 256, 1, 1, 0, stream, arguments,
                                  nullptr);
    Tell(name, code, code == CUDA_SUCCESS ? "" : "cuLaunchKernel");
  }

  // Two kernels, a memset and a copy.
  cudaError_t Capture(cudaStream_t stream, cudaGraph_t* graph) {
    const cudaError_t begun = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (begun != cudaSuccess) return begun;
    LaunchMark(marks_, stream);
    cudaMemsetAsync(buffer_, 1, 4096, stream);
    cudaMemcpyAsync(buffer_ + 8192, buffer_, 4096, cudaMemcpyDeviceToDevice, stream);
    LaunchMark(marks_, stream);
    const cudaError_t inside = cudaGetLastError();
    const cudaError_t ended = cudaStreamEndCapture(stream, graph);
    return inside != cudaSuccess ? inside : ended;
  }

  // Instantiates, launches on `stream` with the given context current, tells.
  void LaunchGraph(const std::string& name, cudaGraph_t graph, cudaStream_t stream,
                   CUcontext instantiate_in) {
    marks_.Clear();
    CUgraphExec exec = nullptr;
    CUresult code;
    {
      const Current current(driver_, instantiate_in, primary_context_);
      code = driver_.cuGraphInstantiateWithFlags(&exec, graph, 0);
    }
    if (code != CUDA_SUCCESS) return Tell(name, code, "cuGraphInstantiate");
    code = driver_.cuGraphLaunch(exec, stream);
    Tell(name, code, code == CUDA_SUCCESS ? "" : "cuGraphLaunch");
    MUST(cudaGraphExecDestroy(exec));
  }

  void CapturedAnywhere() {
    const struct {
      const char* name;
      bool green_stream, green_current;
    } cases[] = {{"captured_primary", false, false},
                 {"captured_green_stream_primary_current", true, false},
                 {"captured_green_stream_green_current", true, true},
                 {"captured_primary_stream_green_current", false, true}};
    for (const auto& item : cases) {
      cudaGraph_t graph = nullptr;
      cudaError_t code;
      {
        const Current current(driver_, item.green_current ? place_.context : primary_context_,
                              primary_context_);
        code = Capture(item.green_stream ? green_ : primary_, &graph);
      }
      const std::string name = item.name;
      marks_.Clear();
      if (code != cudaSuccess || graph == nullptr) {
        Tell(name, code, "capture");
        continue;
      }
      LaunchGraph(name + "/launched_primary_stream", graph, primary_, primary_context_);
      LaunchGraph(name + "/launched_green_stream", graph, green_, primary_context_);
      LaunchGraph(name + "/instantiated_in_green/green_stream", graph, green_, place_.context);
      MUST(cudaGraphDestroy(graph));
    }
  }

  enum class Way { kContextOnly, kKernelAndContext, kGreenFunction };

  CUresult RebindKernel(CUgraphNode node, Way way, CUDA_KERNEL_NODE_PARAMS* parameters) {
    const CUresult got = driver_.cuGraphKernelNodeGetParams(node, parameters);
    if (got != CUDA_SUCCESS) return got;
    if (!told_) {
      Line("GetParams of a captured kernel: func %s, kern %s, ctx %s",
           parameters->func != nullptr ? "set" : "null",
           parameters->kern != nullptr ? "set" : "null",
           parameters->ctx == nullptr            ? "null"
           : parameters->ctx == primary_context_ ? "primary"
                                                 : "other");
      Put("get_params_func_set", parameters->func != nullptr ? 1.0 : 0.0);
      Put("get_params_kern_set", parameters->kern != nullptr ? 1.0 : 0.0);
      Put("get_params_ctx_set", parameters->ctx != nullptr ? 1.0 : 0.0);
      told_ = true;
    }
    parameters->ctx = place_.context;
    if (way == Way::kKernelAndContext) {
      if (parameters->kern == nullptr) parameters->kern = kernel_;
      parameters->func = nullptr;
    }
    if (way == Way::kGreenFunction) {
      parameters->kern = nullptr;
      return FunctionOf(true, &parameters->func);
    }
    return CUDA_SUCCESS;
  }

  CUresult RebindMemset(CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS old;
    const CUresult got = driver_.cuGraphMemsetNodeGetParams(node, &old);
    if (got != CUDA_SUCCESS) return got;
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
    parameters.memset.dst = old.dst;
    parameters.memset.pitch = old.pitch;
    parameters.memset.value = old.value;
    parameters.memset.elementSize = old.elementSize;
    parameters.memset.width = old.width;
    parameters.memset.height = old.height;
    parameters.memset.ctx = place_.context;
    return driver_.cuGraphNodeSetParams(node, &parameters);
  }

  CUresult RebindMemcpy(CUgraphNode node) {
    CUgraphNodeParams parameters = {};
    parameters.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    const CUresult got = driver_.cuGraphMemcpyNodeGetParams(node, &parameters.memcpy.copyParams);
    if (got != CUDA_SUCCESS) return got;
    parameters.memcpy.copyCtx = place_.context;
    return driver_.cuGraphNodeSetParams(node, &parameters);
  }

  std::vector<CUgraphNode> Nodes(CUgraph graph) {
    size_t count = 0;
    MUST(driver_.cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    MUST(driver_.cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
  }

  // The kinds of nodes and what rebinding each answered; the first refusal of a kernel node is
  // returned.
  CUresult RebindAll(const std::string& name, CUgraph graph, Way way, bool memory = true) {
    CUresult refused = CUDA_SUCCESS;
    Json codes;
    for (const CUgraphNode node : Nodes(graph)) {
      CUgraphNodeType type;
      MUST(driver_.cuGraphNodeGetType(node, &type));
      if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
        CUDA_KERNEL_NODE_PARAMS parameters = {};
        CUresult code = RebindKernel(node, way, &parameters);
        if (code == CUDA_SUCCESS) code = driver_.cuGraphKernelNodeSetParams(node, &parameters);
        if (refused == CUDA_SUCCESS) refused = code;
        codes.Set("kernel", static_cast<int>(code));
      } else if (memory && type == CU_GRAPH_NODE_TYPE_MEMSET) {
        codes.Set("memset", static_cast<int>(RebindMemset(node)));
      } else if (memory && type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        codes.Set("memcpy", static_cast<int>(RebindMemcpy(node)));
      } else {
        codes.Set("left_alone_type", static_cast<int>(type));
      }
    }
    Line("%-46s rebinding answers %s", name.c_str(), codes.Text().c_str());
    Put(name + "/rebind_codes", codes);
    return refused;
  }

  void Rebound() {
    cudaGraph_t graph = nullptr;
    MUST(Capture(primary_, &graph));
    const struct {
      const char* name;
      Way way;
      bool memory;
    } ways[] = {{"rebound_clone_context_only", Way::kContextOnly, false},
                {"rebound_clone_kernels_only", Way::kKernelAndContext, false},
                {"rebound_clone_kernels_and_memory", Way::kKernelAndContext, true},
                {"rebound_clone_green_function", Way::kGreenFunction, false}};
    for (const auto& item : ways) {
      const std::string name = item.name;
      CUgraph clone = nullptr;
      MUST(driver_.cuGraphClone(&clone, graph));
      marks_.Clear();
      const CUresult code = RebindAll(name, clone, item.way, item.memory);
      if (code != CUDA_SUCCESS) {
        Tell(name, code, "cuGraphKernelNodeSetParams");
      } else {
        LaunchGraph(name + "/green_stream", clone, green_, primary_context_);
        LaunchGraph(name + "/primary_stream", clone, primary_, primary_context_);
      }
      MUST(cudaGraphDestroy(clone));
    }
    LaunchGraph("original_after_clones_were_rebound", graph, primary_, primary_context_);
    ReboundExec(graph);
    ReboundClone(graph);
    marks_.Clear();
    const CUresult code = RebindAll("rebound_original", graph, Way::kKernelAndContext);
    if (code != CUDA_SUCCESS) return Tell("rebound_original", code, "cuGraphKernelNodeSetParams");
    LaunchGraph("rebound_original/green_stream", graph, green_, primary_context_);
  }

  // An exec whose kernel nodes are changed after instantiation.
  void ReboundExec(cudaGraph_t graph) {
    const char* const name = "rebound_exec";
    marks_.Clear();
    CUgraphExec exec = nullptr;
    MUST(driver_.cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (const CUgraphNode node : Nodes(graph)) {
      CUgraphNodeType type;
      MUST(driver_.cuGraphNodeGetType(node, &type));
      if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
      CUDA_KERNEL_NODE_PARAMS parameters = {};
      CUresult code = RebindKernel(node, Way::kKernelAndContext, &parameters);
      if (code == CUDA_SUCCESS) {
        code = driver_.cuGraphExecKernelNodeSetParams(exec, node, &parameters);
      }
      if (code != CUDA_SUCCESS) return Tell(name, code, "cuGraphExecKernelNodeSetParams");
    }
    const CUresult code = driver_.cuGraphLaunch(exec, green_);
    Tell(name, code, code == CUDA_SUCCESS ? "" : "cuGraphLaunch");
  }

  // What rebinding costs: clone + rebind + instantiate of the graph of four nodes.
  void ReboundClone(cudaGraph_t graph) {
    Samples clone_us, instantiate_us;
    for (int i = 0; i < 20; ++i) {
      const int64_t start = NowNs();
      CUgraph clone = nullptr;
      if (driver_.cuGraphClone(&clone, graph) != CUDA_SUCCESS) return;
      for (const CUgraphNode node : Nodes(clone)) {
        CUgraphNodeType type;
        MUST(driver_.cuGraphNodeGetType(node, &type));
        if (type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
        CUDA_KERNEL_NODE_PARAMS parameters = {};
        if (RebindKernel(node, Way::kKernelAndContext, &parameters) != CUDA_SUCCESS) return;
        if (driver_.cuGraphKernelNodeSetParams(node, &parameters) != CUDA_SUCCESS) return;
      }
      const int64_t cloned = NowNs();
      CUgraphExec exec = nullptr;
      if (driver_.cuGraphInstantiateWithFlags(&exec, clone, 0) != CUDA_SUCCESS) return;
      clone_us.Add(Us(cloned - start));
      instantiate_us.Add(Us(NowNs() - cloned));
      MUST(cudaGraphExecDestroy(exec));
      MUST(cudaGraphDestroy(clone));
    }
    Put("clone_and_rebind_us", clone_us.Summary());
    Put("instantiate_us", instantiate_us.Summary());
    Line("clone + rebind %.1f us, instantiate %.1f us", clone_us.Quantile(0.5),
         instantiate_us.Quantile(0.5));
  }

  // The time of a large memset node in the primary context, and rebound: does the place confine it?
  void MemsetGraph() {
    char* const memory = OnDevice<char>(kMemsetBytes);
    MUST(cudaStreamBeginCapture(primary_, cudaStreamCaptureModeRelaxed));
    MUST(cudaMemsetAsync(memory, 1, kMemsetBytes, primary_));
    cudaGraph_t graph = nullptr;
    MUST(cudaStreamEndCapture(primary_, &graph));
    for (const bool rebound : {false, true}) {
      CUresult code = rebound ? RebindMemset(Nodes(graph)[0]) : CUDA_SUCCESS;
      CUgraphExec exec = nullptr;
      if (code == CUDA_SUCCESS) code = driver_.cuGraphInstantiateWithFlags(&exec, graph, 0);
      Samples us;
      for (int i = 0; i < 6 && code == CUDA_SUCCESS; ++i) {
        const int64_t start = NowNs();
        code = driver_.cuGraphLaunch(exec, green_);
        MUST(cudaStreamSynchronize(green_));
        us.Add(Us(NowNs() - start));
      }
      const char* const name = rebound ? "memset_node_rebound" : "memset_node_of_primary";
      Put(name, us.Summary().Set("code", static_cast<int>(code)));
      Line("%-46s 256 MiB in %.0f us, code %d", name, us.Quantile(0.5), static_cast<int>(code));
    }
  }

  const Driver& driver_;
  const Place& place_;
  Marks marks_;
  std::set<int> expected_;
  CUcontext primary_context_ = nullptr;
  cudaStream_t primary_ = nullptr;
  cudaStream_t green_ = nullptr;
  CUkernel kernel_ = nullptr;
  char* buffer_ = nullptr;
  bool told_ = false;
};

// A memset or copy on the device may run on SMs: its time tells whether it was confined.
void ReportMemoryTimes(const Driver& driver, const Place& place) {
  const cudaStream_t streams[] = {MakeStream(0), MakeStream(driver, place, 0)};
  const char* const names[] = {"primary_stream_us", "green_stream_us"};
  char* const from = OnDevice<char>(kMemsetBytes);
  char* const to = OnDevice<char>(kMemsetBytes);
  Json memset_json, copy_json;
  for (int i = 0; i < 2; ++i) {
    Samples memset_us, copy_us;
    for (int round = 0; round < 6; ++round) {
      int64_t start = NowNs();
      MUST(cudaMemsetAsync(from, round, kMemsetBytes, streams[i]));
      MUST(cudaStreamSynchronize(streams[i]));
      memset_us.Add(Us(NowNs() - start));
      start = NowNs();
      MUST(cudaMemcpyAsync(to, from, kMemsetBytes, cudaMemcpyDeviceToDevice, streams[i]));
      MUST(cudaStreamSynchronize(streams[i]));
      copy_us.Add(Us(NowNs() - start));
    }
    memset_json.Set(names[i], memset_us.Quantile(0.5));
    copy_json.Set(names[i], copy_us.Quantile(0.5));
    Line("256 MiB on the %s: memset %.0f, copy on the device %.0f", names[i],
         memset_us.Quantile(0.5), copy_us.Quantile(0.5));
  }
  SetAnswer("memset_256_mib", memset_json);
  SetAnswer("device_copy_256_mib", copy_json);
}

}  // namespace

void RunSmSet() {
  const Driver& driver = SetUp();
  const Split split = MakeSplit(driver);
  const Marks marks;
  SetAnswer("groups", static_cast<double>(split.groups.size()));
  SetAnswer("remainder_sms", split.remainder_sms);
  Line("%d SMs: %zu groups of 8, remainder %d", SmCount(), split.groups.size(),
       split.remainder_sms);
  Json json;
  std::set<int> left;
  for (int i = 0; i < SmCount(); ++i) left.insert(i);
  for (size_t i = 0; i < split.groups.size(); ++i) {
    const Place place = MakePlace(driver, split, static_cast<int>(i), 1, false);
    if (place.code != CUDA_SUCCESS) {
      Fail(std::string(place.failed) + " answers " + std::to_string(place.code) + " for group " +
           std::to_string(i) + ".");
    }
    const std::set<int> sms = SmsOf(driver, place, marks);
    for (const int sm : sms) left.erase(sm);
    json.Set(std::to_string(i), Ranges(sms));
    Line("group %2zu: SMs %s", i, Ranges(sms).c_str());
    MUST(driver.cuGreenCtxDestroy(place.green));
  }
  json.Set("in_no_group", Ranges(left));
  Line("in no group: %s", Ranges(left).c_str());
  SetAnswer("smids_of_groups", json);
  ReportGpcs();
}

void RunGraphPlace() {
  const Driver& driver = SetUp();
  const Split split = MakeSplit(driver);
  const Marks marks;
  SetAnswer("groups", static_cast<double>(split.groups.size()));
  SetAnswer("remainder_sms", split.remainder_sms);
  ReportUnions(driver, split, marks);
  ReportNestedSplits(driver, split, marks);
  const Place place = MakePlace(driver, split, 0, 4, false);
  if (place.code != CUDA_SUCCESS) Fail("A green context of four groups is refused.");
  ReportMemoryTimes(driver, place);
  GraphCases(driver, place).Run();
}

}  // namespace experiments
