// Judges what copies and kernels keep of their speed beside each other. Held-out pairs train
// nothing.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/durations/copy_contention.h"
#include "src/models/evaluation/judged.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

// By kernel. One without a counter of DRAM is unknown.
std::map<std::string, double> DramShares(const Samples& samples) {
  std::map<std::string, double> shares;
  for (const SampleRow& row : samples.rows) {
    for (const CounterValue& counter : row.counters) {
      if (counter.name == "dram") shares[row.kernel] = counter.value;
    }
  }
  return shares;
}

struct Pair {
  const SampleRow* row = nullptr;
  ContendedCopy copy;
  double dram = 0;  // of the kernel
  double alone_ns = 0;
  double kept = 0;  // of its speed
  double beside_ns() const { return alone_ns / kept; }
  bool opposed() const { return row->neighbour_bytes > 0; }
  bool is_copy() const { return row->what == SampleKind::kCopyBeside; }
};

std::vector<Pair> PairsOf(const Samples& samples) {
  const std::map<std::string, double> shares = DramShares(samples);
  std::vector<Pair> pairs;
  for (const SampleRow& row : samples.rows) {
    const bool counts = row.what == SampleKind::kCopyBeside || row.what == SampleKind::kBesideCopy;
    if (!counts || row.both_ways) continue;
    Pair pair = {&row,
                 {row.to_device, row.pinned, static_cast<double>(row.bytes)},
                 0,
                 Median(row.alone_ns),
                 MedianRatio(row.alone_ns, row.ns)};
    if (!(pair.kept > 0) || !(pair.alone_ns > 0)) continue;
    if (!pair.opposed()) {
      const auto share = shares.find(pair.is_copy() ? row.neighbour : row.kernel);
      if (share == shares.end()) continue;
      pair.dram = share->second;
    }
    pairs.push_back(pair);
  }
  return pairs;
}

std::string SubjectOfCopy(const SampleRow& row) {
  return absl::StrCat(row.pinned ? "pinned " : "pageable ", row.bytes, " bytes ",
                      row.to_device ? "to" : "from", " the device");
}

}  // namespace

void JudgeCopyContention(const Samples& samples, std::vector<Judged>& out) {
  const std::vector<Pair> pairs = PairsOf(samples);
  CopyContention model;
  for (const Pair& pair : pairs) {
    if (IsHeldOut(*pair.row)) continue;
    if (pair.opposed()) {
      model.ObserveOpposed(pair.copy, pair.kept);
    } else if (pair.is_copy()) {
      model.ObserveCopyBesideKernel(pair.copy, pair.dram, pair.alone_ns, pair.beside_ns());
    } else {
      model.ObserveKernelBesideCopy(pair.copy, pair.dram, pair.kept);
    }
  }
  for (const Pair& pair : pairs) {
    if (!IsHeldOut(*pair.row)) continue;
    const std::string subject = SubjectOfCopy(*pair.row);
    if (pair.opposed()) {
      out.push_back({"copies beside a copy the other way", "kept share over bytes", subject,
                     model.OpposedKept(pair.copy), pair.kept});
    } else if (pair.is_copy()) {
      out.push_back({"copies beside kernels", "delay over the kernel's DRAM use",
                     absl::StrCat(subject, " beside ", pair.row->neighbour),
                     model.CopyBesideKernelNs(pair.copy, pair.dram, pair.alone_ns),
                     pair.beside_ns()});
    } else {
      out.push_back({"kernels beside copies", "kept share over the kernel's DRAM use",
                     absl::StrCat(pair.row->kernel, " beside ", subject),
                     model.KernelBesideCopyKept(pair.copy, pair.dram), pair.kept});
    }
  }
}

}  // namespace gpushare::models
