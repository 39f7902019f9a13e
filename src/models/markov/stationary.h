// The steady state of a Markov chain, by the elimination of Grassmann, Taksar and Heyman (GTH).
//
// GTH adds, multiplies and divides numbers that are not negative. It never subtracts, so small
// probabilities keep their relative accuracy. Kernelet 4.4 asks for the eigenvector of eigenvalue
// one (eq. 3), which is the same vector. Allocates nothing. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_STATIONARY_H_
#define GPUSHARE_SRC_MODELS_MARKOV_STATIONARY_H_

#include <span>

namespace gpushare::models::markov {

// `transitions` has states x states entries by rows, each row summing to one; the elimination
// overwrites it. `steady` has one entry a state. State 0 must be reachable from every state.
// Returns false, and leaves `steady` unspecified, if it is not.
bool SolveStationary(std::span<double> transitions, std::span<double> steady);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_STATIONARY_H_
