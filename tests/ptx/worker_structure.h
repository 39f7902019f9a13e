// How the text of one worker has to be built: for twins and for each scope of a fused twin.

#ifndef GPUSHARE_TESTS_PTX_WORKER_STRUCTURE_H_
#define GPUSHARE_TESTS_PTX_WORKER_STRUCTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gpushare::ptx {

// The assembler brings the threads of a warp together only behind a part with one way in: what
// leads into the first thread's claim leads to its head.
inline void ExpectTheClaimIsEnteredAtItsHead(const std::string& worker) {
  const size_t head = worker.find("$gpushare_head:");
  ASSERT_NE(head, std::string::npos);
  const std::string before = worker.substr(0, head);
  for (const char* label : {"$gpushare_none", "$gpushare_publish", "$gpushare_wait"}) {
    EXPECT_NE(worker.find(std::string(label) + ':'), std::string::npos) << label;
    EXPECT_EQ(before.find(std::string("bra ") + label), std::string::npos) << label;
  }
}

// Each of the early exits 0, 1... has a drain of its own, and there are `exits`.
inline void ExpectEachExitHasADrain(const std::string& worker, uint32_t exits) {
  for (uint32_t exit = 0; exit < exits; ++exit) {
    const std::string label = "$gpushare_ended" + std::to_string(exit);
    EXPECT_NE(worker.find("bra " + label + ";"), std::string::npos) << exit;
    const size_t drain = worker.find(label + ":\n\tsetp");
    EXPECT_NE(drain, std::string::npos) << exit;
    EXPECT_EQ(worker.find(label + ":", drain + 1), std::string::npos) << exit;
  }
  EXPECT_EQ(worker.find("$gpushare_ended" + std::to_string(exits)), std::string::npos);
}

}  // namespace gpushare::ptx

#endif  // GPUSHARE_TESTS_PTX_WORKER_STRUCTURE_H_
