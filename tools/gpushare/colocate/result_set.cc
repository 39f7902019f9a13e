#include "tools/gpushare/colocate/result_set.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"

namespace gpushare::tool {

namespace fs = std::filesystem;

namespace {

// The entries of a set. The first one is moved away first and moved in last, so that it is there
// only while the set is complete.
constexpr std::array<const char*, 4> kEntries = {"result.json", "report.html", "trace.pftrace",
                                                 "events"};

// Makes renames, and undoes them unless all were made.
class Moves {
 public:
  Moves() = default;
  ~Moves() {
    std::error_code ignored;
    while (!made_.empty()) {
      fs::rename(made_.back().second, made_.back().first, ignored);
      made_.pop_back();
    }
  }
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  void Make(const std::string& from, const std::string& to) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(from, error))) return;
    fs::rename(from, to, error);
    if (error) {
      throw RunError("The file '" + from + "' cannot be renamed to '" + to +
                     "': " + error.message() + ".");
    }
    made_.push_back({from, to});
  }
  void Keep() { made_.clear(); }

 private:
  std::vector<std::pair<std::string, std::string>> made_;
};

}  // namespace

ResultSet::ResultSet(const std::string& folder)
    : folder_(folder), partial_(folder + "/gpushare.partial") {
  MakeFolder(partial_);
  lock_ = open(partial_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock_);
    throw InputError("Another run writes into the folder '" + folder_ + "'.");
  }
  try {
    TakeBack();
    MakeFolder(partial_ + "/events");
  } catch (...) {
    if (lock_ >= 0) close(lock_);
    throw;
  }
  std::error_code ignored;
  keep_ = fs::exists(partial_ + "/rows.json", ignored);
}

ResultSet::~ResultSet() {
  std::error_code ignored;
  if (!keep_) {
    fs::remove_all(partial_, ignored);
    fs::remove(folder_, ignored);  // only if it is empty
  }
  if (lock_ >= 0) close(lock_);
}

// The new set's events/ moves first, and only when all of the earlier set is away.
void ResultSet::TakeBack() {
  const std::string earlier = partial_ + "/earlier";
  std::error_code ignored;
  if (fs::exists(earlier, ignored) && !HasEarlierResults()) {
    Moves moves;
    if (!fs::exists(partial_ + "/events", ignored)) {
      for (const char* entry : kEntries) moves.Make(folder_ + "/" + entry, partial_ + "/" + entry);
    }
    for (size_t i = kEntries.size(); i-- > 0;) {
      moves.Make(earlier + "/" + kEntries[i], folder_ + "/" + kEntries[i]);
    }
    moves.Keep();
  }
  fs::remove_all(earlier, ignored);
}

void ResultSet::Empty() {
  for (const auto& entry : fs::directory_iterator(partial_)) fs::remove_all(entry.path());
  MakeFolder(partial_ + "/events");
  keep_ = false;
}

bool ResultSet::HasEarlierResults() const {
  std::error_code ignored;
  return fs::exists(folder_ + "/result.json", ignored);
}

void ResultSet::Publish() {
  const std::string earlier = partial_ + "/earlier";
  MakeFolder(earlier);
  Moves moves;
  for (const char* entry : kEntries) moves.Make(folder_ + "/" + entry, earlier + "/" + entry);
  for (size_t i = kEntries.size(); i-- > 0;) {
    moves.Make(partial_ + "/" + kEntries[i], folder_ + "/" + kEntries[i]);
  }
  moves.Keep();
  keep_ = false;
}

}  // namespace gpushare::tool
