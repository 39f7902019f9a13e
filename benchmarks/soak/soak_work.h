// What the soak runs: tasks that can be submitted again and again and whose answers can be checked,
// on the simulated device and on a GPU.
//
// A task belongs to one job at a time: Fill, submit, completion, Check, and again. Threads: a task
// one at a time; making tasks one at a time.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_WORK_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_WORK_H_

#include <cstddef>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>

namespace gpushare::soak {

class Task {
 public:
  virtual ~Task() = default;
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Clears the output and says what to submit. Empty, or why it cannot.
  virtual std::string Fill(TaskOptions& options) = 0;
  // After a completion with VERDICT_OK: empty, or a sentence about the wrong answer.
  virtual std::string Check(const gpushare_completion_record& record) = 0;
  // A self-test: makes the answer of the running job wrong. After its completion, before Check.
  virtual void Spoil() = 0;
};

enum class Kind : uint8_t {
  kSincos,
  kStreaming,
  kSincosSteps,
  kCopyPinned,  // to the device and back: two tasks
  kFfma,
  kStencil,
  kOpaque,
  kBlackScholes,
  kMd5,
  kCopyPageable,
  kGraph,  // LC only
};
constexpr int kBeKinds = 10;

// The kernel that does a kind's work: of the catalogue on a GPU, of the profile when simulated.
struct KindNames {
  const char* catalogue;
  const char* profile;
};
constexpr KindNames NamesOf(Kind kind) {
  constexpr KindNames kNames[] = {{"sincos", "sincos_27us"},
                                  {"streaming", "streaming_59us"},
                                  {"sincos_steps", "sincos_2700us_yield"},
                                  {"sincos", "sincos_27us"},
                                  {"ffma", "ffma"},
                                  {"stencil", "be_stencil"},
                                  {"sincos", "sincos_27us"},
                                  {"black_scholes", "black_scholes"},
                                  {"md5", "be_integer"},
                                  {"sincos", "sincos_27us"},
                                  {"sincos", "decode_gemm"}};
  return kNames[static_cast<size_t>(kind)];
}

class Work {
 public:
  virtual ~Work() = default;
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // About solo_ms alone on the device. `made` gets one task, or two of which the second waits for
  // the first. Registers what it needs. Empty, or why it cannot.
  virtual std::string Make(const Runtime& runtime, Kind kind, double solo_ms, uint32_t seed,
                           std::unique_ptr<Task> (&made)[2]) = 0;
  // Of the device's memory; 0: there is none to watch.
  virtual int64_t FreeDeviceBytes() = 0;
};

std::unique_ptr<Work> MakeSimulatedWork();
// Null, with the reason, in a build without CUDA or where there is no GPU.
std::unique_ptr<Work> MakeCudaWork(std::string* why);

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_WORK_H_
