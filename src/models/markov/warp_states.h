// The states of one kernel on a virtual SM, and where one round moves them.
//
// A unit (a warp, or several warps that stall together) is ready, stalled on a coalesced access or
// stalled on an uncoalesced one (Kernelet 4.4). Allocates nothing. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_WARP_STATES_H_
#define GPUSHARE_SRC_MODELS_MARKOV_WARP_STATES_H_

#include <array>
#include <cstdint>
#include <span>

#include "src/models/markov/limits.h"

namespace gpushare::models::markov {

// A kernel as one virtual SM sees it.
struct ResidentKernel {
  int32_t units = 0;                // what becomes idle and ready as one
  double warps_per_unit = 1;        // 1: states of warps; more: states of blocks
  double memory_share = 0;          // R_m: memory instructions over all instructions
  double uncoalesced_share = 0;     // of the memory instructions
  double uncoalesced_requests = 1;  // requests of one uncoalesced instruction, 1 to 32
};

bool IsUsable(const ResidentKernel& kernel);

// Both kinds of access occur, so that stalled units are counted by kind.
bool HasBothAccesses(const ResidentKernel& kernel);

// The number of states of `kernel`: units + 1, or (units + 1)(units + 2) / 2 with both kinds.
int32_t CountStates(const ResidentKernel& kernel);

// How many units are stalled, by kind of access.
struct Stalled {
  int32_t coalesced = 0;
  int32_t uncoalesced = 0;
};

// Lists the states of `kernel`, all-ready first; `states` has CountStates entries.
void ListStates(const ResidentKernel& kernel, std::span<Stalled> states);

// Probabilities that a stalled unit is ready after the round.
struct Returns {
  double coalesced = 0;
  double uncoalesced = 0;
};

// Room for the probabilities of all combinations of stalled counts.
using StalledCounts = std::array<double, 3 * kStatesMax>;

// The probability of each state of ListStates after one round from state `from` (eq. 2).
void FillRow(const ResidentKernel& kernel, Stalled from, Returns returns, StalledCounts& scratch,
             std::span<double> row);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_WARP_STATES_H_
