#include "tools/gpushare/colocate/plain_rows.h"

#include <algorithm>
#include <iterator>

namespace gpushare::tool {

namespace {

struct PlainRow {
  const char* name;
  RawForm form;
};

constexpr PlainRow kPlainRows[] = {
    {"plain_streams", {false, false}},
    {"plain_streams_carveout", {false, true}},
    {"plain_priority", {true, false}},
    {"plain_priority_carveout", {true, true}},
};

const PlainRow* Find(const std::string& name) {
  for (const PlainRow& row : kPlainRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> PlainRowNames() {
  std::vector<std::string> names;
  for (const PlainRow& row : kPlainRows) names.emplace_back(row.name);
  return names;
}

bool IsPlainRow(const std::string& name) { return Find(name) != nullptr; }

RawForm PlainFormOf(const std::string& name) {
  const PlainRow* row = Find(name);
  return row == nullptr ? RawForm() : row->form;
}

std::vector<std::string> WithoutPlainRows(const std::vector<std::string>& names) {
  std::vector<std::string> rest;
  std::copy_if(names.begin(), names.end(), std::back_inserter(rest),
               [](const std::string& name) { return !IsPlainRow(name); });
  return rest;
}

}  // namespace gpushare::tool
