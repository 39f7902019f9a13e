// Tasks in flight with a counted callback each: how often each was completed, and how it ended.
//
// Sequence: Submit -> ... -> a drain or a shutdown -> ExpectOnce. Threads: submits of one thread;
// callbacks run on any.

#ifndef GPUSHARE_TESTS_FAULTS_FLIGHT_H_
#define GPUSHARE_TESTS_FAULTS_FLIGHT_H_

#include <gpushare/gpushare.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {

class Flight {
 public:
  // Detached. False: the submit was refused.
  bool Submit(gpushare_queue* queue, gpushare_task_options options, bool lc) {
    marks_.push_back(std::make_unique<Mark>());
    options.detached = 1;
    options.callback_user = marks_.back().get();
    options.callback = [](void* user, const gpushare_completion_record* record) {
      Mark& mark = *static_cast<Mark*>(user);
      mark.record = *record;
      mark.calls.fetch_add(1);
    };
    const gpushare_status status = lc ? gpushare_submit_lc(queue, &options, nullptr)
                                      : gpushare_submit_be(queue, &options, nullptr);
    if (status != GPUSHARE_OK) marks_.pop_back();
    return status == GPUSHARE_OK;
  }

  size_t size() const { return marks_.size(); }
  const gpushare_completion_record& record(size_t i) const { return marks_[i]->record; }

  // Each task was completed once, with a verdict. How many ended with each.
  std::map<gpushare_verdict, int> ExpectOnce() const {
    std::map<gpushare_verdict, int> verdicts;
    for (const auto& mark : marks_) {
      EXPECT_EQ(mark->calls.load(), 1);
      EXPECT_NE(mark->record.verdict, GPUSHARE_VERDICT_PENDING);
      ++verdicts[mark->record.verdict];
    }
    return verdicts;
  }

 private:
  struct Mark {
    std::atomic<int> calls{0};
    gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  };
  std::vector<std::unique_ptr<Mark>> marks_;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_FAULTS_FLIGHT_H_
