// Why a kernel gets no twin: a reason, the line of the text that gives it, and a sentence.
//
// Where in the flow: vocabulary, below every stage of src/ptx.
// Threads: any; plain data.

#ifndef GPUSHARE_SRC_PTX_BASE_REFUSAL_H_
#define GPUSHARE_SRC_PTX_BASE_REFUSAL_H_

#include <cstdint>
#include <string>

namespace gpushare::ptx {

// In the order of docs/ptx.md. Every reason has one row in kReasons (refusal.cc).
enum class Reason : uint8_t {
  kNone,
  kSyntax,           // the text is not PTX as the parser knows it
  kTooLarge,         // a bound of limits.h
  kVersion,          // .version, .target or .address_size that twins do not support
  kNoEntry,          // no entry of this name, or several and no name
  kAlreadyTwin,      // the text uses the names of twins
  kUnknownSymbol,    // an operand that nothing declares
  kUnknownOpcode,    // an instruction that the table does not list
  kCluster,          // thread block clusters
  kGridSync,         // waits for another block: a cooperative launch or a lock in global memory
  kSetMaxNReg,       // setmaxnreg
  kMbarrier,         // an mbarrier that outlives its block task
  kPartialBarrier,   // a barrier of some threads only, or one whose threads are not known
  kWarpSync,         // an exit of some threads of a warp before the others synchronise
  kSpecialRegister,  // a register whose value differs in a worker: its SM, its grid, its launch
  kCall,             // a call that was not inlined
  kParameters,       // more bytes of parameters than a launch takes
  kSharedMemory,     // more static shared memory than a block has
  // Of fused twins alone.
  kBlockShape,  // a block whose threads are not known or not whole warps
  kThreads,     // more threads than a block has
  kBarriers,    // more barriers than a block has
  kRegisters,   // registers that do not add up
  kVariable,    // a variable of the module that others may write or set
};

struct Refusal {
  Reason reason = Reason::kNone;
  uint32_t line = 0;    // of the given text, from 1; 0: of the text as a whole
  std::string message;  // a sentence with the value and the limit
};

// The reason's name in messages, tables and commands: "unknown opcode".
const char* Name(Reason reason);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_BASE_REFUSAL_H_
