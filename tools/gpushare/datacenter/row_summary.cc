#include "tools/gpushare/datacenter/row_summary.h"

#include <algorithm>
#include <cmath>

namespace gpushare::tool {

void Violations::Add(const Latency& latency) {
  ++count;
  violated += latency.Violated() ? 1 : 0;
  severe += latency.Excess() > kSevereExcess ? 1 : 0;
  worst_excess = std::max(worst_excess, latency.Excess());
}

void Violations::Add(const Violations& other) {
  count += other.count;
  violated += other.violated;
  severe += other.severe;
  worst_excess = std::max(worst_excess, other.worst_excess);
}

RowSummary Summarise(const Warehouse& warehouse, const std::string& policy, Placing placing,
                     const std::vector<GpuFigures>& gpus) {
  RowSummary out;
  out.policy = policy;
  out.placing = placing;
  struct Sums {
    int64_t queries = 0;
    int64_t late = 0;
    double be_time = 0;
  };
  std::vector<Sums> sums(warehouse.apps.lc.size());
  for (const LcApp& app : warehouse.apps.lc) out.by_app.emplace_back().app = app.name;
  for (const GpuFigures& gpu : gpus) {
    const auto lc = static_cast<size_t>(warehouse.services[static_cast<size_t>(gpu.service)].lc);
    AppSummary& app = out.by_app[lc];
    app.apps.Add(gpu.latency);
    for (const ColocationFigures& one : gpu.colocations) app.colocations.Add(one.latency);
    sums[lc].queries += gpu.latency.queries;
    sums[lc].late += gpu.latency.late;
    const double be_time = gpu.BeTime();
    sums[lc].be_time += be_time;
    ++out.levels[std::min(kLevels - 1, static_cast<size_t>(std::max(0.0, 10 * be_time)))];
  }
  double be_time = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    AppSummary& app = out.by_app[i];
    if (app.apps.count == 0) continue;
    app.be_time = sums[i].be_time / static_cast<double>(app.apps.count);
    app.late_share = static_cast<double>(sums[i].late) /
                     static_cast<double>(std::max<int64_t>(1, sums[i].queries));
    out.late_share_max = std::max(out.late_share_max, app.late_share);
    out.apps.Add(app.apps);
    out.colocations.Add(app.colocations);
    be_time += sums[i].be_time;
  }
  out.be_time = be_time / static_cast<double>(std::max<size_t>(1, gpus.size()));
  return out;
}

CheckSummary Compare(const RowSummary& row, const RowSummary& checked,
                     const std::vector<GpuFigures>& row_gpus,
                     const std::vector<GpuFigures>& checked_gpus) {
  CheckSummary out;
  out.policy = row.policy;
  out.gpus = static_cast<int64_t>(checked_gpus.size());
  out.row = row;
  out.checked = checked;
  for (size_t i = 0; i < checked_gpus.size(); ++i) {
    const double ratio = static_cast<double>(row_gpus[i].latency.p99_ns) /
                         static_cast<double>(std::max<int64_t>(1, checked_gpus[i].latency.p99_ns));
    const double difference = std::abs(ratio - 1);
    out.p99_difference_mean += difference / static_cast<double>(checked_gpus.size());
    out.p99_difference_max = std::max(out.p99_difference_max, difference);
    out.be_time_difference_max = std::max(
        out.be_time_difference_max, std::abs(row_gpus[i].BeTime() - checked_gpus[i].BeTime()));
  }
  return out;
}

}  // namespace gpushare::tool
