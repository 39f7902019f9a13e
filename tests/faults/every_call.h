// Every function of the C ABI that returns a status, as a call with good arguments on given
// handles.
//
// Tests bring a runtime into a state, make each call and compare its status with what the header
// promises for that state. A call that gets what it must release releases it, and the ones that
// consume a handle or end the runtime come last. Threads: the caller's.

#ifndef GPUSHARE_TESTS_FAULTS_EVERY_CALL_H_
#define GPUSHARE_TESTS_FAULTS_EVERY_CALL_H_

#include <gpushare/gpushare.h>

#include <map>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {

struct Handles {
  gpushare_runtime* runtime = nullptr;
  gpushare_app* app = nullptr;
  gpushare_app* lc_app = nullptr;
  gpushare_queue* lc_queue = nullptr;
  gpushare_queue* be_queue = nullptr;
  gpushare_kernel* kernel = nullptr;  // of BE tasks
  gpushare_kernel* graph = nullptr;   // of LC tasks
  gpushare_fused_kernel* fused = nullptr;
  gpushare_event_log* log = nullptr;
  gpushare_ticket tickets[2] = {{0}, {0}};  // complete; the calls use both up
  gpushare_query query = {0};
};

struct Call {
  const char* name;
  gpushare_status (*make)(const Handles& handles);
  bool has_handle = true;
};

const std::vector<Call>& EveryCall();

// Handles of everything that the fixture's runtime can have, with complete tickets.
class EveryHandle {
 public:
  // Writes an event log into the test's temporary folder.
  void Open(const Api& api);
  // Gives back what no call has taken; the fixture is closed after it.
  void Close();
  Handles handles;
};

// Makes every call. `expected` has the status of those that do not answer `otherwise`.
void ExpectOfEveryCall(const Handles& handles, gpushare_status otherwise,
                       const std::map<std::string, gpushare_status>& expected);

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_FAULTS_EVERY_CALL_H_
