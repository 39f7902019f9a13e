// What a run submitted and what the library reported of it: the evidence that checks.h judges.
//
// An entry has a fixed address from before its submit until the run ends, because the callback
// points to it. Threads: one, the driver's, which is the run's.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_LEDGER_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_LEDGER_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpushare::fault_runs {

class Session;

struct Entry {
  Session* session = nullptr;
  int number = 0;
  int64_t block_tasks = 0;          // of a kernel; 0: the record does not count them
  std::vector<const Entry*> waits;  // tasks that must be OK before this one
  bool accepted = false;
  bool held = false;  // the run holds its ticket
  gpushare_ticket ticket = {0};
  int callbacks = 0;
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;  // of the last callback
};

struct Ledger {
  std::vector<std::unique_ptr<Entry>> entries;
  std::vector<Entry*> held;           // with a ticket to wait for, cancel and release
  std::vector<std::string> problems;  // sentences; a run without one has passed
  int64_t refused = 0;                // submits
  int64_t shutdown_late_ns = 0;       // end of the shutdown after its deadline

  Entry& Add(Session* session);
  void Problem(const std::string& sentence) { problems.push_back(sentence); }
};

inline Entry& Ledger::Add(Session* session) {
  entries.push_back(std::make_unique<Entry>());
  Entry& entry = *entries.back();
  entry.session = session;
  entry.number = static_cast<int>(entries.size()) - 1;
  return entry;
}

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_LEDGER_H_
