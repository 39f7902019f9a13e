// The `user` pointer of a table of the application's own, with the function that destroys it.
//
// Where in the flow: a user policy and a user cost model each own one. Invariants: destroy runs at
// most once, and only after Arm: a table that the scheduler never took over must not destroy
// `user`. Threads: the one that replaces the table or ends the runtime, with no lock held.

#ifndef GPUSHARE_BINDINGS_C_USER_DATA_H_
#define GPUSHARE_BINDINGS_C_USER_DATA_H_

#include <string>

#include "bindings/c/log.h"

namespace gpushare::abi {

class UserData {
 public:
  // `what` is the table's kind, for messages: a string literal. `log` must outlive the object.
  UserData(const char* what, const char* name, void (*destroy)(void*), void* user, const Log& log);
  // Runs destroy(user); what it throws is logged.
  ~UserData();
  UserData(const UserData&) = delete;
  UserData& operator=(const UserData&) = delete;

  void Arm() { armed_ = true; }
  const std::string& name() const { return name_; }

 private:
  const char* const what_;
  const std::string name_;
  void (*const destroy_)(void*);
  void* const user_;
  const Log& log_;
  bool armed_ = false;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_USER_DATA_H_
