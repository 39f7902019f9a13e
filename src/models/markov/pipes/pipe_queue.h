// What the stalled warps of two kernels wait for one pipe.
//
// A stall spends `elsewhere` cycles off the pipe and `cycles` on it; all that is queued shares the
// pipe. Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_QUEUE_H_
#define GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_QUEUE_H_

#include <array>

namespace gpushare::models::markov {

// One kernel's stalls and one pipe.
struct PipeLoad {
  double queued = 0;     // stalled warps x cycles
  double elsewhere = 0;  // cycles of a stall off the pipe
  double cycles = 0;     // cycles of a stall on the pipe; 0: the kernel does not use it
};

// The factors x on the `cycles` of the older and of the younger kernel, least values of at least 1
// with queued / (elsewhere + cycles x), summed over both, at most 1. The older kernel's factor is
// max(1, older_wait x that of the younger): below 1 / older_wait only the younger one waits.
std::array<double, 2> PipeSlowdowns(const PipeLoad& older, const PipeLoad& younger,
                                    double older_wait);

}  // namespace gpushare::models::markov

#endif  // GPUSHARE_SRC_MODELS_MARKOV_PIPES_PIPE_QUEUE_H_
