#include "tests/models/partition/simulated_partition.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace gpushare::models::partition {
namespace {

constexpr int64_t kNone = INT64_MAX;

struct Job {
  int64_t deadline_ns = 0;
  size_t task = 0;
  int64_t release_ns = 0;
  int64_t left_ns = 0;
  bool operator<(const Job& other) const {
    return std::tie(deadline_ns, task, release_ns) <
           std::tie(other.deadline_ns, other.task, other.release_ns);
  }
};

class Simulation {
 public:
  Simulation(const std::vector<SimulatedTask>& tasks, Mode mode, const Releases& releases)
      : tasks_(tasks),
        mode_(mode),
        releases_(releases),
        next_ns_(releases.first_ns),
        responses_(tasks.size()) {}

  std::vector<int64_t> Run() {
    while (true) {
      const int64_t release = *std::min_element(next_ns_.begin(), next_ns_.end());
      if (ready_.empty()) {
        if (release >= releases_.until_ns) return responses_;
        now_ns_ = std::max(now_ns_, release);
        Release();
        continue;
      }
      Job job = *ready_.begin();
      ready_.erase(ready_.begin());
      RunJob(job);
    }
  }

 private:
  // Every job whose time has come.
  void Release() {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      while (next_ns_[i] <= now_ns_ && next_ns_[i] < releases_.until_ns) {
        ready_.insert({next_ns_[i] + tasks_[i].deadline_ns, i, next_ns_[i], tasks_[i].work_ns});
        next_ns_[i] += tasks_[i].period_ns;
        if (releases_.jitter != nullptr && releases_.jitter->Uniform() < 0.5) {
          next_ns_[i] += static_cast<int64_t>(releases_.jitter->Uniform() *
                                              static_cast<double>(tasks_[i].period_ns));
        }
      }
    }
  }

  int64_t NextRelease() const {
    const int64_t next = *std::min_element(next_ns_.begin(), next_ns_.end());
    return next < releases_.until_ns ? next : kNone;
  }

  // To its end, or until another job takes its place.
  void RunJob(Job job) {
    const SimulatedTask& task = tasks_[job.task];
    while (true) {
      const int64_t next = NextRelease();
      if (next == kNone || next - now_ns_ >= job.left_ns) {
        now_ns_ += job.left_ns;
        responses_[job.task] = std::max(responses_[job.task], now_ns_ - job.release_ns);
        Release();
        return;
      }
      job.left_ns -= next - now_ns_;
      now_ns_ = next;
      Release();
      if (ready_.begin()->deadline_ns >= job.deadline_ns) continue;
      if (mode_ == Mode::kPreempt) {
        ready_.insert(job);
        return;
      }
      if (mode_ == Mode::kEvict && task.evictable && job.left_ns > task.eviction_ns) {
        now_ns_ += task.eviction_ns;
        job.left_ns += task.resume_ns;
        ready_.insert(job);
        Release();
        return;
      }
      RunToEnd(job);
      return;
    }
  }

  void RunToEnd(const Job& job) {
    now_ns_ += job.left_ns;
    responses_[job.task] = std::max(responses_[job.task], now_ns_ - job.release_ns);
    Release();
  }

  const std::vector<SimulatedTask>& tasks_;
  const Mode mode_;
  const Releases& releases_;
  int64_t now_ns_ = 0;
  std::vector<int64_t> next_ns_;
  std::set<Job> ready_;
  std::vector<int64_t> responses_;
};

}  // namespace

std::vector<int64_t> SimulatePartition(const std::vector<SimulatedTask>& tasks, Mode mode,
                                       const Releases& releases) {
  return Simulation(tasks, mode, releases).Run();
}

}  // namespace gpushare::models::partition
