// The table of opcodes. An instruction that it does not list is refused.
//
// Where in the flow: below the flow graph, the analyses and the checks, which ask it what an
// instruction does. To add an opcode: docs/ptx.md.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_OPCODES_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_OPCODES_H_

#include <cstdint>
#include <string_view>

#include "src/ptx/base/refusal.h"

namespace gpushare::ptx {

enum class OpKind : uint8_t {
  kPlain,          // the result is a function of the operands
  kVaries,         // the result may differ among threads although the operands do not
  kLoad,           // ld: varies, parameters and constants aside
  kMove,           // mov: as plain; resolved when an address is followed
  kAdd,            // add: as plain; the same
  kWarp,           // all threads of the mask take part; the result varies
  kWarpSame,       // the same, and every thread gets the same result
  kBarrier,        // bar.sync, bar.red, bar.arrive, barrier.*: of the block
  kBranch,         // bra, brx.idx
  kExit,           // ret, exit
  kTrap,           // ends the kernel with an error
  kCall,           //
  kAtomic,         // atom
  kMbarrierInit,   //
  kMbarrierInval,  //
  kRefused,        // known, and no twin has it: `reason` says why
};

// What must have ended before a block task counts as done.
enum class AsyncKind : uint8_t { kNone, kCopy, kBulk };

struct Opcode {
  std::string_view name;  // a prefix of the written opcode up to a dot
  OpKind kind = OpKind::kPlain;
  bool has_result = true;  // the first operand is written
  AsyncKind async = AsyncKind::kNone;
  Reason reason = Reason::kNone;  // of kRefused
};

// The row with the longest name that `written` begins with; null: not listed.
const Opcode* FindOpcode(std::string_view written);

// Whether `written` has the modifier, given without its dot: "volatile" of "ld.volatile.u32".
bool HasModifier(std::string_view written, std::string_view modifier);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_OPCODES_H_
