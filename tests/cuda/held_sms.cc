// See held_sms.h.

#include "tests/cuda/held_sms.h"

#include <algorithm>
#include <map>
#include <set>

namespace gpushare::cuda {

HeldSms::HeldSms(const std::vector<BlockRecord>& records, uint32_t first_tag, uint32_t last_tag) {
  for (const BlockRecord& record : records) {
    if (record.tag < first_tag || record.tag > last_tag) continue;
    records_.push_back(record);
    longest_ns_ = std::max(longest_ns_, record.end_ns - record.begin_ns);
  }
  std::sort(records_.begin(), records_.end(), [](const BlockRecord& one, const BlockRecord& two) {
    return one.begin_ns < two.begin_ns;
  });
}

uint64_t HeldSms::begin_ns() const { return records_.empty() ? 0 : records_.front().begin_ns; }

uint64_t HeldSms::end_ns() const {
  uint64_t end_ns = 0;
  for (const BlockRecord& record : records_) end_ns = std::max(end_ns, record.end_ns);
  return end_ns;
}

HeldSms::Most HeldSms::AtOnce(uint64_t from_ns, uint64_t until_ns) const {
  Most most;
  int blocks = 0;
  std::map<uint32_t, int> by_sm;
  for (const Edge& edge : EdgesOf(from_ns, until_ns)) {
    blocks += edge.begins ? 1 : -1;
    const int on_sm = by_sm[edge.sm] += edge.begins ? 1 : -1;
    if (on_sm == 0) by_sm.erase(edge.sm);
    most.sms = std::max(most.sms, static_cast<int>(by_sm.size()));
    most.blocks = std::max(most.blocks, blocks);
  }
  return most;
}

int HeldSms::AtAnyTime(uint64_t from_ns, uint64_t until_ns) const {
  std::set<uint32_t> sms;
  for (const BlockRecord& record : Clipped(from_ns, until_ns)) sms.insert(record.sm);
  return static_cast<int>(sms.size());
}

uint64_t HeldSms::WithinSince(int limit, uint64_t from_ns, uint64_t until_ns) const {
  uint64_t since_ns = from_ns;
  std::map<uint32_t, int> by_sm;
  for (const Edge& edge : EdgesOf(from_ns, until_ns)) {
    const bool above = static_cast<int>(by_sm.size()) > limit;
    const int on_sm = by_sm[edge.sm] += edge.begins ? 1 : -1;
    if (on_sm == 0) by_sm.erase(edge.sm);
    if (above) since_ns = edge.time_ns;
  }
  return since_ns;
}

std::vector<BlockRecord> HeldSms::Clipped(uint64_t from_ns, uint64_t until_ns) const {
  const uint64_t earliest_ns = from_ns > longest_ns_ ? from_ns - longest_ns_ : 0;
  auto at = std::lower_bound(
      records_.begin(), records_.end(), earliest_ns,
      [](const BlockRecord& record, uint64_t time_ns) { return record.begin_ns < time_ns; });
  std::vector<BlockRecord> clipped;
  for (; at != records_.end() && at->begin_ns < until_ns; ++at) {
    BlockRecord record = *at;
    record.begin_ns = std::max(record.begin_ns, from_ns);
    record.end_ns = std::min(record.end_ns, until_ns);
    if (record.begin_ns < record.end_ns) clipped.push_back(record);
  }
  return clipped;
}

std::vector<HeldSms::Edge> HeldSms::EdgesOf(uint64_t from_ns, uint64_t until_ns) const {
  std::vector<Edge> edges;
  for (const BlockRecord& record : Clipped(from_ns, until_ns)) {
    edges.push_back({record.begin_ns, record.sm, true});
    edges.push_back({record.end_ns, record.sm, false});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& one, const Edge& two) {
    return one.time_ns != two.time_ns ? one.time_ns < two.time_ns : one.begins < two.begins;
  });
  return edges;
}

}  // namespace gpushare::cuda
