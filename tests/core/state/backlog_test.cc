// The lists of waiting tasks: the run of ready tasks that a queue keeps, against a count from the
// head on.

#include "src/core/state/backlog.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"

namespace gpushare::core {
namespace {

constexpr int kTasks = 40;

class BacklogTest : public ::testing::Test {
 protected:
  BacklogTest() : tasks_(std::make_unique<Task[]>(kTasks)) {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    flow_ = std::make_unique<Flow>(SchedulerOptions(), std::move(device), std::move(model),
                                   *MakePolicy("fifo"));
    queue_.app = &app_;
    for (int i = 0; i < kTasks; ++i) {
      tasks_[i].app = &app_;
      tasks_[i].queue = &queue_;
      free_.push_back(&tasks_[i]);
    }
  }

  Task& Push(bool waits, bool front = false) {
    Task& task = *free_.back();
    free_.pop_back();
    task.wait_tickets.Clear();
    if (waits) task.wait_tickets.Add(TicketId{1});
    front ? PushFront(*flow_, task) : PushBack(*flow_, task);
    listed_.insert(front ? listed_.begin() : listed_.end(), &task);
    return task;
  }
  void Drop(size_t index) {
    Unlink(*flow_, *listed_[index]);
    free_.push_back(listed_[index]);
    listed_.erase(listed_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  int32_t CountFromHead(int32_t most) const {
    int32_t count = 1;
    while (count < std::min<int32_t>(most, static_cast<int32_t>(listed_.size())) &&
           listed_[static_cast<size_t>(count)]->wait_tickets.empty()) {
      ++count;
    }
    return count;
  }

  std::unique_ptr<Flow> flow_;
  App app_;
  Queue queue_;
  std::unique_ptr<Task[]> tasks_;
  std::vector<Task*> free_;
  std::vector<Task*> listed_;  // from the head on
};

TEST_F(BacklogTest, TheReadyRunIsThatOfACountFromTheHead) {
  std::mt19937 random(3);
  for (int step = 0; step < 100'000; ++step) {
    const auto drawn = random() % 10;
    if (drawn < 5 && !free_.empty()) {
      Push(random() % 6 == 0);
    } else if (drawn == 5 && !free_.empty()) {
      Push(random() % 6 == 0, true);
    } else if (drawn < 9 && !listed_.empty()) {
      Drop(drawn == 8 ? random() % listed_.size() : 0);
    }
    if (listed_.empty() || random() % 3 == 0) continue;
    const auto most = static_cast<int32_t>(1 + random() % kTasks);
    ASSERT_EQ(ReadyRun(queue_, most), CountFromHead(most)) << step;
  }
}

TEST_F(BacklogTest, AViewIsCurrentUntilTheFirstOrSecondTaskIsAnotherOne) {
  std::mt19937 random(5);
  const auto two = [&] {
    std::vector<Task*> first = listed_;
    first.resize(2);  // null: there is none
    return first;
  };
  for (int step = 0; step < 10'000; ++step) {
    queue_.view_is_current = !listed_.empty();
    const std::vector<Task*> before = two();
    const auto drawn = random() % 10;
    if (drawn < 5 && !free_.empty()) {
      Push(false, drawn == 0);
    } else if (!listed_.empty()) {
      Drop(random() % listed_.size());
    }
    const bool same = before[0] != nullptr && before == two();
    ASSERT_EQ(queue_.view_is_current, same) << step;
  }
}

TEST_F(BacklogTest, AQueueIsOnceInThePlanOrder) {
  for (int i = 0; i < 3; ++i) {
    Push(false);
    EXPECT_EQ(flow_->backlog.size(), 1);
    EXPECT_EQ(flow_->plan_order.size(), 1);
    Drop(0);
    EXPECT_TRUE(flow_->backlog.empty());
  }
}

}  // namespace
}  // namespace gpushare::core
