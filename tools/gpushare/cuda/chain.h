// The LC programs: chains of cuBLAS GEMMs and GELUs. A chain is captured as one graph for each
// place, or submitted task by task. Results are compared with the same chain run alone.
//
// A chain's operations alternate between two buffers. Each capture and each app has its own
// buffers, so that two of them may be on the device at once. Weights are shared and constant.
//
// Threads: one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/gpushare/cuda/blas.h"
#include "tools/gpushare/cuda/kernels.h"

namespace gpushare::tool {

// One operation of a layer: a GEMM to `n` columns from `k`, or a GELU over `n` columns.
struct ChainStep {
  const char* task;  // its name as a task of its own
  bool gelu = false;
  int64_t n = 0;
  int64_t k = 0;
  double gain = 1;  // of the weights; keeps the variance of the values at about 1
};

struct ChainFamily {
  const char* name;
  int64_t rows = 0;  // the batch
  int64_t inputs = 0;
  std::vector<ChainStep> layer;
  int layers = 0;  // layers with their own weights; longer chains reuse them from the start
};

// The family of a graph ("chain1") or of a task ("chain1_up"); null for another name.
const ChainFamily* FamilyOfTask(const std::string& task);

// The buffers of one instance of a chain.
struct ChainBuffers {
  std::array<DeviceMemory, 2> turns;
};

class ChainPrograms {
 public:
  ChainPrograms();
  ~ChainPrograms();
  ChainPrograms(const ChainPrograms&) = delete;
  ChainPrograms& operator=(const ChainPrograms&) = delete;

  // Whether `name` is a whole chain as a graph, such as "decode16".
  static bool IsGraph(const std::string& name);

  ChainBuffers NewBuffers(const ChainFamily& family, int layers);
  // Fills all buffers with valid numbers.
  void FillInputs(const ChainBuffers& buffers);
  // Fills the chain's output with NaN.
  void Poison(const ChainFamily& family, int layers, const ChainBuffers& buffers);

  // Operation `index` of the chain, which reads and writes `buffers`.
  Gemm GemmAt(const ChainFamily& family, const ChainBuffers& buffers, int index);
  GeluParams GeluAt(const ChainFamily& family, const ChainBuffers& buffers, int index);

  enum class Answer : uint8_t { kRight, kUntouched, kWrong };
  // Compares the chain's output with that of the chain run alone. `sentence` gets the difference.
  Answer Check(const ChainFamily& family, int layers, const ChainBuffers& buffers,
               std::string* sentence);

  // --- graphs ---

  // Enqueues the graph `name` for a place of `sms` SMs on a stream under capture. 0, or an error
  // code.
  int Capture(const std::string& name, void* stream, int32_t sms);
  // Forgets the captures of the last runtime and poisons their outputs.
  void BeginRun();
  // Throws RunError unless at least one place ran and every place that ran has the right answer.
  void VerifyGraph(const std::string& name);

  // Computes the reference; must be called before anything else runs.
  void Prepare(const ChainFamily& family, int layers) { Reference(family, layers); }
  void PrepareGraph(const std::string& name);

  bool weights_transposed() const { return weights_transposed_; }
  void* stream() const { return stream_; }

 private:
  struct Captured {
    ChainBuffers buffers;
    DeviceMemory workspace;
  };
  struct Graph {
    std::vector<std::unique_ptr<Captured>> captures;
    size_t used = 0;  // captures of this run
  };

  const std::vector<float>& Reference(const ChainFamily& family, int layers);
  void SpotCheck(const ChainFamily& family, const ChainBuffers& buffers);
  void Run(const ChainFamily& family, int layers, const ChainBuffers& buffers, void* stream,
           int32_t sms, void* workspace);
  const void* Input(const ChainFamily& family);
  const void* Weights(const ChainFamily& family, int layer, size_t step);
  std::vector<float> Read(const void* from, int64_t elements);
  std::vector<float> ReadColumn(const void* weights, int64_t n, int64_t k, int64_t column);
  void Synchronize(const char* step);

  bool weights_transposed_ = true;
  void* stream_ = nullptr;
  Blas blas_;
  DeviceMemory workspace_;  // for chains that run alone
  std::map<std::string, DeviceMemory> inputs_;
  std::map<std::pair<std::string, int>, DeviceMemory> weights_;  // by family and step in the chain
  std::map<std::pair<std::string, int>, std::vector<float>> references_;
  std::map<std::string, Graph> graphs_;
};

// bf16 bits to a number.
float FloatOfBf16(uint16_t bits);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_CHAIN_H_
