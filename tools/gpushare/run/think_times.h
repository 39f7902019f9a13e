// When the clients of a closed loop ask again.
//
// A client asks again a think time after its answer. For arrivals of the kind `steps` there is one
// client: an engine, whose steps follow each other after short gaps in busy periods, with silences
// between these. What follows a step is known when it is submitted, as an engine knows whether it
// has work left. Draws depend on the seed alone, so that a run with BE work has those of one
// without. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_RUN_THINK_TIMES_H_
#define GPUSHARE_TOOLS_GPUSHARE_RUN_THINK_TIMES_H_

#include <cstdint>

#include "tools/gpushare/base/random.h"
#include "tools/gpushare/run/run_plan.h"

namespace gpushare::tool {

struct Think {
  int64_t time_ns = 0;
  // What the request before it may state (next_within_ns of gpushare_task_options); 0: nothing.
  int64_t next_within_ns = 0;
};

class ThinkTimes {
 public:
  // The plan must outlive it.
  explicit ThinkTimes(const LcPlan& plan) : plan_(plan), random_(plan.think_seed) {}

  Think Draw();

 private:
  Think DrawStep();

  const LcPlan& plan_;
  Random random_;
  int64_t steps_left_ = 0;  // of the busy period, behind the step that the next draw follows
  bool begun_ = false;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_RUN_THINK_TIMES_H_
