// Runs the PTX of small kernels: a grid of threads with memory, atomics and barriers, in a random
// order of threads and blocks. For tests of twins where no GPU is at hand.
//
// It knows the opcodes of tests/ptx/kernels.h and of the twins' protocol, and stops at any other.
// It says so where a launch hangs: all threads of a block wait, and no barrier has as many as it
// counts.

#ifndef GPUSHARE_TESTS_PTX_INTERPRETER_H_
#define GPUSHARE_TESTS_PTX_INTERPRETER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/ptx/text/module.h"

namespace gpushare::ptx {

inline constexpr uint64_t kGlobalBase = 0x10000;  // of the global memory, as kernels see it

struct InterpreterLaunch {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {32, 1, 1};
  uint32_t dynamic_shared_bytes = 0;
  // Threads [first, end) of each block get a turn 64 times less often than the others.
  std::array<uint32_t, 2> slow_threads = {0, 0};
  std::vector<std::vector<uint8_t>> parameters;  // in order
  uint32_t sms = 1;                              // block k runs on SM k % sms
  std::function<void(uint64_t step)> each_step;  // may change memory, as a host does
};

class Interpreter {
 public:
  // `text` must outlive the interpreter.
  Interpreter(std::string_view text, std::string_view entry);

  // Runs a launch to its end. An empty text, or what went wrong.
  std::string Run(const InterpreterLaunch& launch, std::vector<uint8_t>& memory, uint64_t seed);

 private:
  struct Thread {
    uint32_t at = 0;  // statement
    uint32_t block = 0;
    std::array<uint32_t, 3> index = {0, 0, 0};
    std::map<SymbolId, uint64_t> registers;
    bool done = false;
    bool waits = false;
    uint64_t barrier = 0;
    uint64_t barrier_threads = 0;  // 0: all that have not ended
    bool says = false;             // at a reduction
  };
  struct Block {
    std::array<uint32_t, 3> index = {0, 0, 0};
    uint32_t sm = 0;
    std::vector<uint8_t> shared;
    std::vector<Thread> threads;
  };

  void Step(Block& block, Thread& thread);
  void Execute(Block& block, Thread& thread, const Statement& statement);
  bool Memory(Block& block, Thread& thread, const Statement& statement);
  bool Arithmetic(Block& block, Thread& thread, const Statement& statement);
  bool Compare(Block& block, Thread& thread, const Statement& statement) const;
  void Wait(Block& block, Thread& thread, const Statement& statement, bool reduces);
  void Release(Block& block);
  bool ReleaseBarrier(Block& block, uint64_t barrier);
  uint64_t Special(const Block& block, const Thread& thread, std::string_view name) const;
  uint64_t Value(const Block& block, const Thread& thread, const Word& word) const;
  uint64_t Operand(const Block& block, const Thread& thread, const Statement& statement,
                   uint16_t operand) const;
  uint64_t Sum(const Block& block, const Thread& thread, const Statement& statement,
               uint16_t operand) const;
  const Word* WordAt(const Statement& statement, uint16_t operand) const;
  uint8_t* Place(Block& block, Thread& thread, const Statement& statement, uint32_t bytes);
  const uint8_t* Parameter(const Statement& statement, uint32_t bytes) const;
  void Set(Thread& thread, const Statement& statement, uint64_t value);
  void Fail(const std::string& what);

  Module module_;
  uint32_t Label(const Statement& from, std::string_view name);

  std::map<std::pair<std::string_view, uint32_t>, uint32_t> labels_;  // by name and scope
  std::map<SymbolId, uint32_t> shared_;                               // offsets
  uint32_t shared_bytes_ = 0;  // of static variables; dynamic memory is behind them
  const InterpreterLaunch* launch_ = nullptr;
  std::vector<uint8_t>* memory_ = nullptr;
  uint64_t steps_ = 0;
  std::string error_;
};

}  // namespace gpushare::ptx

#endif  // GPUSHARE_TESTS_PTX_INTERPRETER_H_
