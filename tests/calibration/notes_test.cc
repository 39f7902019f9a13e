// Each dropped thing has one sentence, and nothing dropped has none.

#include "src/calibration/base/notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace gpushare::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(NotesTest, NothingDroppedIsNotNoted) {
  Notes notes;
  NoteImpossible(notes, "Kernel 'a'", 0, "speeds");
  NoteRetaken(notes, "'a'", 0);
  EXPECT_TRUE(NoteIfUnusable(notes, "a", absl::OkStatus()));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(NotesTest, ASentenceHasTheSubjectTheCountAndTheReason) {
  Notes notes;
  NoteImpossible(notes, "Kernel 'a'", 3, "samples of slices");
  NoteRetaken(notes, "'b'", 2);
  EXPECT_FALSE(NoteIfUnusable(notes, "c", absl::InvalidArgumentError("speed is 200.")));
  EXPECT_THAT(notes, ElementsAre("Kernel 'a': 3 impossible samples of slices were dropped.",
                                 StartsWith("While 'b' was measured, 2 samples"),
                                 "The measurement of 'c' was dropped: speed is 200."));
}

}  // namespace
}  // namespace gpushare::models
