// What the server runs on the device: a model as an LC graph, and a best-effort (BE) kernel.
//
// The model takes kValues numbers and gives them back rotated by Shift() places, as a chain of
// matrix products with permutation matrices. So a client can check every answer.
//
// Threads: a Work is used by one thread at a time; input(), output() and Shift() by any.
#ifndef GPUSHARE_EXAMPLES_SERVERS_HTTP_WORK_H_
#define GPUSHARE_EXAMPLES_SERVERS_HTTP_WORK_H_

#include <cstddef>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>

namespace gpushare::example {

constexpr int kValues = 64;  // numbers of a request, and of its answer

class Work {
 public:
  virtual ~Work() = default;
  // Registers the model as a graph that takes about graph_ns alone. Throws gpushare::Error.
  virtual Kernel RegisterModel(const Runtime& runtime, int64_t graph_ns) = 0;
  virtual Kernel RegisterBe(const Runtime& runtime) = 0;
  // One BE task, without its kernel.
  virtual TaskOptions BeTask() const = 0;
  // Where the model reads and writes kValues bf16 numbers on the device. Null: nothing is computed.
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

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_HTTP_WORK_H_
