// Which arrangement adaptive uses: the whole device for both, or one of the splits.
//
// The arrangement of the largest value (arrangement/value.h) wins, and a trial of an unknown pair
// may replace it (candidates/trial.h). A forced mechanism takes its best split. An LC side holds at
// least the reserved CapSMs.
//
// The choice is a pure function of a small question (question.h). The last few answers are
// remembered, so most plans only build the question and compare it. A new question computes what
// differs from the one before (arrangement/value.h). Threads: the planner's.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CHOOSE_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CHOOSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/core/policies/adaptive/arrangement/arrangement.h"
#include "src/core/policies/adaptive/arrangement/question.h"
#include "src/core/policies/adaptive/arrangement/shift.h"
#include "src/core/policies/adaptive/arrangement/value.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

class Chooser {
 public:
  explicit Chooser(Mechanism mechanism);

  // The best arrangement whose places are ready; valid until the next call. The plan wants its
  // places and those of the best of all. `shifts` follow the snapshot.
  const Arrangement& Choose(const Snapshot& snapshot, Shifts& shifts, Plan& plan);

  // Of the last answer.
  const Question& question() const { return question_.question(); }

 private:
  struct Remembered {
    bool used = false;
    Question question;
    Arrangement answer;
  };

  const Arrangement& AnswerTo(const Question& question, const Snapshot& snapshot);

  Mechanism mechanism_;
  QuestionBuilder question_;
  std::vector<Remembered> remembered_;  // kLayoutsRemembered, allocated once
  size_t next_ = 0;
  SplitValues values_;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_CHOOSE_H_
