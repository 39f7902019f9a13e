// The worker and slice protocols of gpushare/device as PTX: what a twin executes around a body.
//
// Where in the flow: below the transforms. The same steps in the same order as worker.cuh,
// leader.cuh and completion.cuh, which say why; the offsets come from launch.h.
//
// Registers that live while a body runs: %gpushare_slot, which place the next claim takes, and the
// block index as far as the body still needs it. All else is in shared memory or read again.

#ifndef GPUSHARE_SRC_PTX_TWINS_PROTOCOL_H_
#define GPUSHARE_SRC_PTX_TWINS_PROTOCOL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "src/ptx/base/refusal.h"
#include "src/ptx/twins/worker_place.h"

namespace gpushare::ptx {

// Names that begin so are the twins' own; a text that has them is refused.
inline constexpr std::string_view kReservedName = "gpushare_";
inline constexpr std::string_view kLaunchParameter = "\n\t.param .align 8 .b8 gpushare_launch[128]";

struct ProtocolChoices {
  bool flat_block = false;    // one dimension: thread 0 is the one whose x is 0
  bool early_exits = false;   // ended threads take part in the body's barriers
  uint32_t exits = 0;         // of the body
  uint32_t barrier = 0;       // of the loop, and of the body where early_exits
  uint32_t shared_bytes = 0;  // that a worker twin declares for its words; 0: it declares none
  bool copies = false;        // wait for cp.async at the end of a block task
  bool bulk_copies = false;   // the same for cp.async.bulk
  WorkerPlace place;
  // Of a part, in the spelling of the protocol: before all else, and at the start of a body.
  std::string start;
  std::string in_body;
};

// Refuses a text that uses the twins' own names, at the first one.
Refusal CheckReservedNames(std::string_view text);

// What stands before and behind the body.
struct Surroundings {
  std::string before;
  std::string behind;
};

Surroundings WorkerSurroundings(const ProtocolChoices& choices);
Surroundings SliceSurroundings(const ProtocolChoices& choices);

// The label that exit number `exit` of a body goes to, from 0.
std::string EndOfBlockTask(const ProtocolChoices& choices, uint32_t exit);

// In the spelling of the protocol: `~` for the registers' prefix, `<field>` for an operand.
std::string BodyText(std::string_view text, const WorkerPlace& place);

// A barrier of a body some of whose threads may have ended: they take part, so that it still counts
// all threads.
std::string JoinedBarrier(const ProtocolChoices& choices);

// Reads a dimension ('x', 'y' or 'z') of the original grid into %gpushare_n.
std::string ReadGridSize(char dimension, const WorkerPlace& place);

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_TWINS_PROTOCOL_H_
