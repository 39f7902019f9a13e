// The reader of task sets; see task_set_file.h.

#include "tools/gpushare/plan/task_set_file.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"

namespace gpushare::tool {

namespace {

using models::partition::Kind;
using models::partition::kSmsMax;
using models::partition::kTaskNsMax;
using models::partition::kTasksMax;
using models::partition::Task;
using models::partition::TaskSet;
using models::partition::WorstCase;

// C(m) = a / m + b, with which the thesis describes a kernel.
std::vector<WorstCase> ReadLine(const Json& value, const std::string& file,
                                const std::string& where, int32_t sms) {
  ObjectReader in(value, file, where);
  if (!in.Has("a_ns")) in.Fail("a_ns", "is missing");
  const double a_ns = in.Number("a_ns", 0, 0, static_cast<double>(kTaskNsMax) * kSmsMax);
  const double b_ns = in.Number("b_ns", 0, 0, static_cast<double>(kTaskNsMax));
  in.Finish();
  if (a_ns + b_ns <= 0) in.Fail("a_ns", "and b_ns are 0, and work takes time");
  // On few SMs the line may be longer than any task: those sizes do not run it.
  std::vector<WorstCase> out;
  for (const WorstCase& point : models::partition::WorstCasesOfLine(a_ns, b_ns, sms)) {
    if (point.ns <= kTaskNsMax) out.push_back(point);
  }
  return out;
}

std::vector<WorstCase> ReadPoints(const Json& value, const std::string& file,
                                  const std::string& where) {
  std::vector<WorstCase> out;
  for (size_t i = 0; i < value.size(); ++i) {
    ObjectReader in(value[i], file, where + "[" + std::to_string(i) + "]");
    if (!in.Has("sms")) in.Fail("sms", "is missing");
    if (!in.Has("ns")) in.Fail("ns", "is missing");
    const auto sms = static_cast<int32_t>(in.Integer("sms", 0, 1, kSmsMax));
    out.push_back({.sms = sms, .ns = in.Integer("ns", 0, 1, kTaskNsMax)});
    in.Finish();
  }
  return out;
}

// A curve: points in ascending SMs, or a line.
std::vector<WorstCase> ReadCurve(ObjectReader& in, const char* key, const std::string& file,
                                 int32_t sms) {
  const Json* value = in.Member(key);
  if (value == nullptr) return {};
  if (value->is_object()) return ReadLine(*value, file, in.Where(key), sms);
  const Json* points = in.Array(key, static_cast<size_t>(kSmsMax));
  if (points->empty()) in.Fail(key, "is empty");
  return ReadPoints(*points, file, in.Where(key));
}

Kind ReadKind(ObjectReader& in) {
  const std::string kind = in.Text("kind", "compute");
  if (kind == "memory") return Kind::kMemory;
  if (kind != "compute") in.Fail("kind", "is '" + kind.substr(0, 60) + "', not compute or memory");
  return Kind::kCompute;
}

Task ReadTask(const Json& value, const std::string& file, const std::string& where, int32_t sms) {
  ObjectReader in(value, file, where);
  Task task;
  task.name = in.Name("name");
  if (!in.Has("period_ns")) in.Fail("period_ns", "is missing");
  task.period_ns = in.Integer("period_ns", 0, 1, kTaskNsMax);
  task.deadline_ns = in.Integer("deadline_ns", task.period_ns, 1, task.period_ns);
  task.kind = ReadKind(in);
  task.alone = ReadCurve(in, "worst_case", file, sms);
  if (task.alone.empty()) in.Fail("worst_case", "is missing, or longer than an hour at every size");
  task.in_conflict = ReadCurve(in, "worst_case_in_conflict", file, sms);
  task.evictable = in.Flag("evictable", false);
  task.eviction_ns = in.Integer("eviction_ns", 0, 0, kTaskNsMax);
  task.resume_ns = in.Integer("resume_ns", 0, 0, kTaskNsMax);
  if (!task.evictable && task.eviction_ns + task.resume_ns > 0) {
    in.Fail("evictable", "is false, and eviction_ns or resume_ns is stated");
  }
  task.neighbour_factor =
      in.Number("neighbour_factor", 1, 1, models::partition::kNeighbourFactorMax);
  in.Finish();
  return task;
}

// The parser compares each object with all before it in its array, so that a million tasks take
// minutes. Objects in an array of the document are tasks.
void RefuseMany(std::string_view text, const std::string& file) {
  int depth = 0;
  int64_t tasks = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      tasks += c == '{' && depth == 2 ? 1 : 0;
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  if (tasks <= static_cast<int64_t>(kTasksMax)) return;
  throw InputError(file + ": tasks has " + std::to_string(tasks) + " elements, and the limit is " +
                   std::to_string(kTasksMax) + ".");
}

}  // namespace

TaskSet ParseTaskSet(std::string_view text, const std::string& file) {
  RefuseMany(text, file);
  const Json document = ParseJson(text, file);
  ObjectReader in(document, file, "");
  TaskSet set;
  if (!in.Has("sms")) in.Fail("sms", "is missing");
  set.sms = static_cast<int32_t>(in.Integer("sms", 0, 1, kSmsMax));
  set.grain = static_cast<int32_t>(in.Integer("granularity", 1, 1, set.sms));
  const Json* tasks = in.Array("tasks", kTasksMax);
  if (tasks == nullptr || tasks->empty()) in.Fail("tasks", "is missing or empty");
  in.Finish();
  for (size_t i = 0; i < tasks->size(); ++i) {
    set.tasks.push_back(ReadTask((*tasks)[i], file, "tasks[" + std::to_string(i) + "]", set.sms));
  }
  const auto status = models::partition::Check(set);
  if (!status.ok()) throw InputError(file + ": " + std::string(status.message()));
  return set;
}

TaskSet LoadTaskSet(const std::string& path) {
  return ParseTaskSet(ReadFile(path, kTaskSetBytesMax), path);
}

}  // namespace gpushare::tool
