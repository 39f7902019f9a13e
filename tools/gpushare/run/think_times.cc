#include "tools/gpushare/run/think_times.h"

#include <algorithm>
#include <cmath>

namespace gpushare::tool {
namespace {

double Between(int64_t least, int64_t most, Random& random) {
  return static_cast<double>(least) + random.Uniform() * static_cast<double>(most - least);
}

}  // namespace

Think ThinkTimes::Draw() {
  const ArrivalSpec& spec = plan_.app->arrivals;
  if (spec.kind == ArrivalKind::kSteps) return DrawStep();
  if (!spec.random_think) return {.time_ns = spec.think_ns};
  return {.time_ns = std::llround(static_cast<double>(spec.think_ns) * random_.Exponential())};
}

// The number of steps is drawn, not their time: BE work that delays a step adds none.
Think ThinkTimes::DrawStep() {
  const StepsSpec& steps = plan_.app->arrivals.steps;
  const double gap_ns = static_cast<double>(steps.gap_ns_min + steps.gap_ns_max) / 2;
  const auto draw_steps = [&] {
    const double busy_ns = Between(steps.busy_ns_min, steps.busy_ns_max, random_);
    const double step_ns = gap_ns + static_cast<double>(plan_.solo_ns);
    return std::max<int64_t>(1, std::llround(busy_ns / step_ns));
  };
  if (!begun_) steps_left_ = draw_steps() - 1;
  begun_ = true;
  if (steps_left_ > 0) {
    --steps_left_;
    return {.time_ns = std::llround(Between(steps.gap_ns_min, steps.gap_ns_max, random_)),
            .next_within_ns = steps.stated ? steps.gap_ns_max : 0};
  }
  steps_left_ = draw_steps() - 1;
  const double busy_ns = static_cast<double>(steps.busy_ns_min + steps.busy_ns_max) / 2;
  const double silence_ns = busy_ns * (1 - plan_.load) / plan_.load;
  return {.time_ns = std::llround(silence_ns * random_.Exponential()),
          .next_within_ns = steps.stated ? int64_t{GPUSHARE_NO_NEXT} : 0};
}

}  // namespace gpushare::tool
