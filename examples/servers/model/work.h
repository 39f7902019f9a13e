// What the servers run on a device: a model as an LC graph, or a best-effort (BE) kernel.
//
// The model takes kValues numbers and gives them back rotated by Shift() places, as a chain of
// matrix products with permutation matrices. So a client can check every answer.
//
// Threads: a Work is used by one thread at a time; input(), output() and Shift() by any.
#ifndef GPUSHARE_EXAMPLES_SERVERS_MODEL_WORK_H_
#define GPUSHARE_EXAMPLES_SERVERS_MODEL_WORK_H_

#include <cstddef>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>

namespace gpushare::example {

constexpr int kValues = 64;  // numbers of a request, and of its answer

class Work {
 public:
  virtual ~Work() = default;
  // Registers the model as a graph that takes about graph_ns alone. Once. Throws gpushare::Error or
  // std::runtime_error.
  virtual Kernel RegisterModel(const Runtime& runtime, const char* name, int64_t graph_ns) = 0;
  // Registers the BE kernel. Once. Throws likewise.
  virtual Kernel RegisterBe(const Runtime& runtime, const char* name) = 0;
  // One BE task, without its kernel. After RegisterBe.
  virtual TaskOptions BeTask() const = 0;
  // After RegisterModel: where the model reads and writes kValues bf16 numbers on the device. Null:
  // nothing is computed.
  virtual void* input() const = 0;
  virtual void* output() const = 0;
  // Host memory that copies read and write, as long as the Work lives. Throws std::runtime_error.
  virtual void* HostMemory(size_t bytes) = 0;
  virtual int Shift() const = 0;
};

// For the simulated and the null device, which compute nothing.
std::unique_ptr<Work> MakeSimulatedWork();
// For a GPU, with kernels of libgpushare_kernels. Null: this build has none. Throws
// std::runtime_error if there is no GPU.
std::unique_ptr<Work> MakeGpuWork();
// The one that fits the device of the runtime. Throws std::runtime_error also if this build has
// none.
std::unique_ptr<Work> MakeWork(const Runtime& runtime);

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_MODEL_WORK_H_
