// Tasks that differ in anything that a judgement depends on are not the same work.

#include "src/core/policies/parts/same_work.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace gpushare::core {
namespace {

TEST(SameWorkTest, TasksDifferOnlyInQueueOrderAndProgress) {
  const HeadView task;
  HeadView other = task;
  other.task = TicketId{7};
  other.queue = QueueId{3};
  other.sequence = 9;
  other.ready_ns = 5;
  other.ready_count = 2;
  other.resumed = other.followed = true;
  EXPECT_TRUE(IsSameWork(task, other));
}

TEST(SameWorkTest, OneOtherFieldMakesAnotherTask) {
  const KernelDesc kernel;
  const std::vector<std::function<void(HeadView&)>> changes = {
      [](HeadView& task) { task.app = 1; },
      [](HeadView& task) { task.app_class = AppClass::kLatencyCritical; },
      [](HeadView& task) { task.kind = TaskKind::kGraph; },
      [&](HeadView& task) { task.kernel = &kernel; },
      [](HeadView& task) { task.kernel_index = 1; },
      [](HeadView& task) { task.remaining.duration_ns = 1; },
      [](HeadView& task) { task.remaining.error_ns = 1; },
      [](HeadView& task) { task.eviction_ns = 1; },
      [](HeadView& task) { task.eviction_p99_ns = 1; },
      [](HeadView& task) { task.evictable = true; },
      [](HeadView& task) { task.confinable = true; },
      [](HeadView& task) { task.runs_alone = true; },
      [](HeadView& task) { task.awaited_by_lc = true; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    const HeadView task;
    HeadView other = task;
    changes[i](other);
    EXPECT_FALSE(IsSameWork(task, other)) << "change " << i;
  }
}

}  // namespace
}  // namespace gpushare::core
