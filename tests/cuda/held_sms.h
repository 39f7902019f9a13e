// Which SMs blocks held, and when, from what each block recorded of itself.
//
// A block holds its SM in the half-open interval [begin, end): one that begins when another ends
// does not hold an SM at the same time as that one. Times are those of the GPU's %globaltimer.
// Threads: one.

#ifndef GPUSHARE_TESTS_CUDA_HELD_SMS_H_
#define GPUSHARE_TESTS_CUDA_HELD_SMS_H_

#include <cstdint>
#include <vector>

namespace gpushare::cuda {

// One block, or one block task of a worker.
struct BlockRecord {
  uint64_t begin_ns;
  uint64_t end_ns;
  uint32_t sm;
  uint32_t tag;  // who ran it
};

class HeldSms {
 public:
  // Of the records with a tag from `first_tag` to `last_tag`.
  HeldSms(const std::vector<BlockRecord>& records, uint32_t first_tag, uint32_t last_tag);

  bool empty() const { return records_.empty(); }
  // Of all records; 0 without one.
  uint64_t begin_ns() const;
  uint64_t end_ns() const;

  struct Most {
    int sms = 0;
    int blocks = 0;
  };
  // The most SMs, and the most blocks, at one time in [from_ns, until_ns).
  Most AtOnce(uint64_t from_ns, uint64_t until_ns) const;
  // SMs that some block held at any time in [from_ns, until_ns).
  int AtAnyTime(uint64_t from_ns, uint64_t until_ns) const;
  // The first time from which on at most `limit` SMs are held until `until_ns`; at least from_ns.
  uint64_t WithinSince(int limit, uint64_t from_ns, uint64_t until_ns) const;

 private:
  struct Edge {
    uint64_t time_ns;
    uint32_t sm;
    bool begins;
  };
  // The records that overlap the window, clipped to it.
  std::vector<BlockRecord> Clipped(uint64_t from_ns, uint64_t until_ns) const;
  // Their beginnings and ends in order, ends first.
  std::vector<Edge> EdgesOf(uint64_t from_ns, uint64_t until_ns) const;

  std::vector<BlockRecord> records_;  // by begin_ns
  uint64_t longest_ns_ = 0;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_HELD_SMS_H_
