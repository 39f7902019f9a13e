// The files of a run land together: result.json, report.html, trace.pftrace and events/.
//
// A run writes them into FOLDER/gpushare.partial. Publish() renames them into FOLDER when all are
// there. Until then the earlier set in FOLDER is untouched. FOLDER has a result.json only while the
// files beside it belong to it: Publish() takes the old one away first and brings the new one last.
//
// Threads: the caller's. One process at a time writes into a folder; a lock of the file system
// keeps others out and ends with the process.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_RESULT_SET_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_RESULT_SET_H_

#include <string>

namespace gpushare::tool {

class ResultSet {
 public:
  // Makes the partial folder, and takes back what a process that ended inside Publish() had moved.
  // What an earlier run left in the partial folder stays until Empty(). InputError when another
  // process writes into the folder, RunError when it cannot be made.
  explicit ResultSet(const std::string& folder);
  // Removes the partial folder, and FOLDER if it is then empty, unless it shall be kept.
  ~ResultSet();
  ResultSet(const ResultSet&) = delete;
  ResultSet& operator=(const ResultSet&) = delete;

  const std::string& folder() const { return folder_; }
  // Where the run writes.
  const std::string& partial() const { return partial_; }

  // Empties the partial folder: this run will write a whole set.
  void Empty();
  // Whether FOLDER has an earlier complete set.
  bool HasEarlierResults() const;
  // Whether the partial folder stays when this object goes. At first it does if it has rows that
  // --resume can use.
  void KeepPartial(bool keep) { keep_ = keep; }
  bool keeps_partial() const { return keep_; }
  // Moves the set into FOLDER. On failure FOLDER has the earlier set again, and RunError names the
  // file.
  void Publish();

 private:
  void TakeBack();

  std::string folder_;
  std::string partial_;
  int lock_ = -1;
  bool keep_ = false;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_RESULT_SET_H_
