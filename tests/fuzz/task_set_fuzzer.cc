// Fuzzes the reader of task sets, and plans what it takes: any bytes end in a plan or in an
// InputError with one line of text.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/models/partition/planner.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/plan/plan_command.h"
#include "tools/gpushare/plan/task_set_file.h"

namespace {

// Few, so that an input takes milliseconds.
constexpr int64_t kTestsMax = 300;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using gpushare::models::partition::Analysis;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gpushare::tool::Planned planned;
  try {
    planned.set = gpushare::tool::ParseTaskSet(text, "fuzz.json");
  } catch (const gpushare::tool::InputError& error) {
    const std::string message = error.what();
    if (message.empty() || message.back() != '.') std::abort();
    return 0;
  }
  for (const Analysis analysis :
       {Analysis::kConcurrent, Analysis::kExclusive, Analysis::kEvictable}) {
    planned.options.analysis = analysis;
    planned.options.tests_max = kTestsMax;
    auto plan = gpushare::models::partition::MakePlan(planned.set, planned.options);
    if (!plan.ok()) std::abort();  // the reader has checked the set
    planned.plan = *std::move(plan);
    if (planned.plan.admitted != planned.plan.reason.empty()) std::abort();
    // A partitioning of nothing is no plan, and a plan is within the device.
    if (planned.plan.admitted &&
        (planned.plan.partitions.empty() || planned.plan.sms > planned.set.sms)) {
      std::abort();
    }
    for (const auto& partition : planned.plan.partitions) {
      for (const auto& task : partition.tasks) {
        const auto& stated = planned.set.tasks[static_cast<size_t>(task.source)];
        if (task.response_ns < 1 || task.response_ns > stated.deadline_ns) std::abort();
      }
    }
    if (gpushare::tool::TextOf(planned).empty() || gpushare::tool::JsonOf(planned).empty() ||
        gpushare::tool::SvgOf(planned).empty()) {
      std::abort();
    }
  }
  return 0;
}
