// Field tables of the kinds of rows; see json_sample_row.h.

#include "src/models/samples/json_sample_row.h"

#include <cmath>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/core/base/status.h"
#include "src/models/json/json_fields.h"
#include "src/models/profile/profile_limits.h"
#include "src/models/samples/samples_limits.h"

namespace gpushare::models {
namespace {

using core::LibraryCall;

constexpr const char* kKindWords[] = {"solo",     "copy",        "beside",     "fused",
                                      "counters", "copy_beside", "beside_copy"};
constexpr const char* kFormWords[] = {"original", "workers", "slice",  "fused",   "graph",
                                      "library",  "memcpy",  "opaque", "segments"};
constexpr const char* kOperationWords[] = {"none",    "matmul",     "convolution",
                                           "pooling", "activation", "softmax"};
constexpr const char* kTypeWords[] = {"float32", "float16", "bfloat16"};
constexpr const char* kModeWords[] = {"default", "max_pooling", "average_pooling",
                                      "relu",    "tanh",        "sigmoid"};
constexpr double kSizeMax = 1 << 30;
constexpr double kTimeLeastNs = 0.1;  // as times are rounded
constexpr double kCounterMax = 1e18;
constexpr int64_t kFusedBlocksMax = 32;  // of one part in a fused block
constexpr double kWorkersMax = 1 << 12;
constexpr double kLoadPercentMax = 1 << 20;
constexpr auto kTasksMax = static_cast<double>(core::kMaxBlockTasks);

template <std::vector<double> SampleRow::*member>
Field<SampleRow>::Custom TimesField() {
  return {[](const JsonValue& value, const JsonPath& path, SampleRow& out) {
            (out.*member).clear();
            return ReadArray(value, path, kSampleRepeatsMax,
                             [&](const JsonValue& element, const JsonPath& at) {
                               double& time = (out.*member).emplace_back();
                               return ReadDouble(element, at, kTimeLeastNs, kDurationMaxNs, time);
                             });
          },
          [](const SampleRow& in, JsonWriter& json) {
            json.BeginArray();
            for (const double time : in.*member) json.Write(std::round(time * 10) / 10);
            json.EndArray();
          }};
}

// A whole number that most rows do not have: left out where it is `usual`.
template <class Number, Number SampleRow::*member, int64_t usual, int64_t most>
Field<SampleRow>::Custom RareField() {
  return {[](const JsonValue& value, const JsonPath& path, SampleRow& out) {
            int64_t whole = 0;
            absl::Status status = ReadInteger(value, path, usual, static_cast<double>(most), whole);
            if (status.ok()) out.*member = static_cast<Number>(whole);
            return status;
          },
          [](const SampleRow& in, JsonWriter& json) { json.Write(int64_t{in.*member}); },
          [](const SampleRow& in) { return in.*member == usual; }};
}

const Field<LibraryCall> kCallFields[] = {
    {"operation",
     WordField<LibraryCall, core::LibraryOperation, &LibraryCall::operation, kOperationWords>()},
    {"type", WordField<LibraryCall, core::DataType, &LibraryCall::type, kTypeWords>()},
    {"mode", WordField<LibraryCall, core::LibraryMode, &LibraryCall::mode, kModeWords>()},
    {"channels_last", &LibraryCall::channels_last},
    {"transpose_a", &LibraryCall::transpose_a},
    {"transpose_b", &LibraryCall::transpose_b},
    {"m", &LibraryCall::m, 0, kSizeMax},
    {"n", &LibraryCall::n, 0, kSizeMax},
    {"k", &LibraryCall::k, 0, kSizeMax},
    {"batch", &LibraryCall::batch, 0, kSizeMax},
    {"channels", &LibraryCall::channels, 0, kSizeMax},
    {"height", &LibraryCall::height, 0, kSizeMax},
    {"width", &LibraryCall::width, 0, kSizeMax},
    {"filters", &LibraryCall::filters, 0, kSizeMax},
    {"filter_height", &LibraryCall::filter_height, 0, kSizeMax},
    {"filter_width", &LibraryCall::filter_width, 0, kSizeMax},
    {"padding", &LibraryCall::padding, 0, kSizeMax},
    {"stride", &LibraryCall::stride, 0, kSizeMax},
    {"dilation", &LibraryCall::dilation, 0, kSizeMax},
    {"groups", &LibraryCall::groups, 0, kSizeMax},
};

const Field<CounterValue> kCounterFields[] = {
    {"name", &CounterValue::name, 1, core::kMaxNameBytes},
    {"value", &CounterValue::value, 0, kCounterMax},
};

Field<SampleRow>::Custom CallField() {
  auto field = ObjectField<SampleRow, LibraryCall, &SampleRow::call, kCallFields>();
  field.omit = [](const SampleRow& in) {
    return in.call.operation == core::LibraryOperation::kNone;
  };
  return field;
}

const auto kWhat = WordField<SampleRow, SampleKind, &SampleRow::what, kKindWords>();
const auto kForm = WordField<SampleRow, core::Form, &SampleRow::form, kFormWords>();
const Field<SampleRow> kKernel = {"kernel", &SampleRow::kernel, 1, core::kMaxNameBytes};
const Field<SampleRow> kTasks = {"block_tasks", &SampleRow::block_tasks, 0, kTasksMax};
const Field<SampleRow> kSms = {"sms", &SampleRow::sms, 1, kSmsMax};
const Field<SampleRow> kWorkers = {"workers_per_sm", &SampleRow::workers_per_sm, 0, kWorkersMax};
const Field<SampleRow> kNeighbour = {"neighbour", &SampleRow::neighbour, 1, core::kMaxNameBytes};
const Field<SampleRow> kNeighbourTasks = {"neighbour_block_tasks",
                                          &SampleRow::neighbour_block_tasks, 0, kTasksMax};

const Field<SampleRow> kSoloFields[] = {
    {"what", kWhat},
    kKernel,
    {"form", kForm},
    kTasks,
    kSms,
    kWorkers,
    {"call", CallField()},
    {"input_size", RareField<int64_t, &SampleRow::input_size, 0, kInputSizeMax>()},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kCopyFields[] = {
    {"what", kWhat},
    {"to_device", &SampleRow::to_device},
    {"pinned", &SampleRow::pinned},
    {"both_ways", &SampleRow::both_ways},
    {"bytes", &SampleRow::bytes, 1, static_cast<double>(core::kMaxCopyBytes)},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kBesideFields[] = {
    {"what", kWhat},
    kKernel,
    {"form", kForm},
    kTasks,
    kSms,
    kWorkers,
    kNeighbour,
    kNeighbourTasks,
    {"neighbour_sms", &SampleRow::neighbour_sms, 1, kSmsMax},
    {"neighbour_workers_per_sm", &SampleRow::neighbour_workers_per_sm, 0, kWorkersMax},
    {"same_sms", &SampleRow::same_sms},
    {"alone_ns", TimesField<&SampleRow::alone_ns>()},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kFusedFields[] = {
    {"what", kWhat},
    kKernel,
    {"tensor", &SampleRow::tensor, 1, core::kMaxNameBytes},
    kNeighbour,
    kTasks,
    kNeighbourTasks,
    {"tensor_blocks", RareField<int32_t, &SampleRow::tensor_blocks, 1, kFusedBlocksMax>()},
    {"cuda_blocks", RareField<int32_t, &SampleRow::cuda_blocks, 1, kFusedBlocksMax>()},
    {"load_percent", &SampleRow::load_percent, 0, kLoadPercentMax},
    {"alone_ns", TimesField<&SampleRow::alone_ns>()},
    {"neighbour_ns", TimesField<&SampleRow::neighbour_ns>()},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kToDevice = {"to_device", &SampleRow::to_device};
const Field<SampleRow> kPinned = {"pinned", &SampleRow::pinned};
const Field<SampleRow> kBytes = {"bytes", &SampleRow::bytes, 1,
                                 static_cast<double>(core::kMaxCopyBytes)};
const Field<SampleRow> kCopyBesideFields[] = {
    {"what", kWhat},
    kToDevice,
    kPinned,
    kBytes,
    {"neighbour", &SampleRow::neighbour, 0, core::kMaxNameBytes},
    kNeighbourTasks,
    {"neighbour_bytes", &SampleRow::neighbour_bytes, 0, static_cast<double>(core::kMaxCopyBytes)},
    {"alone_ns", TimesField<&SampleRow::alone_ns>()},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kBesideCopyFields[] = {
    {"what", kWhat},
    kKernel,
    {"form", kForm},
    kTasks,
    kSms,
    kWorkers,
    kToDevice,
    kPinned,
    {"both_ways", &SampleRow::both_ways},
    kBytes,
    {"alone_ns", TimesField<&SampleRow::alone_ns>()},
    {"ns", TimesField<&SampleRow::ns>()},
};
const Field<SampleRow> kCountersFields[] = {
    {"what", kWhat},
    kKernel,
    {"form", kForm},
    kTasks,
    {"counters", ListField<SampleRow, CounterValue, &SampleRow::counters, kCounterFields,
                           kSampleCountersMax>()},
};

absl::Span<const Field<SampleRow>> FieldsOf(SampleKind what) {
  switch (what) {
    case SampleKind::kSolo:
      return kSoloFields;
    case SampleKind::kCopy:
      return kCopyFields;
    case SampleKind::kBeside:
      return kBesideFields;
    case SampleKind::kFused:
      return kFusedFields;
    case SampleKind::kCounters:
      return kCountersFields;
    case SampleKind::kCopyBeside:
      return kCopyBesideFields;
    case SampleKind::kBesideCopy:
      return kBesideCopyFields;
  }
  return {};
}

// The keys without which a row says nothing.
std::vector<absl::string_view> NeededKeys(SampleKind what) {
  switch (what) {
    case SampleKind::kSolo:
      return {"kernel", "sms", "ns"};
    case SampleKind::kCopy:
      return {"bytes", "ns"};
    case SampleKind::kBeside:
      return {"kernel", "sms", "neighbour", "neighbour_sms", "alone_ns", "ns"};
    case SampleKind::kFused:
      return {"kernel", "tensor", "neighbour", "alone_ns", "neighbour_ns", "ns"};
    case SampleKind::kCounters:
      return {"kernel", "counters"};
    case SampleKind::kCopyBeside:
      return {"bytes", "alone_ns", "ns"};
    case SampleKind::kBesideCopy:
      return {"kernel", "sms", "bytes", "alone_ns", "ns"};
  }
  return {};
}

absl::Status CheckComplete(const JsonValue& value, SampleKind what) {
  for (const absl::string_view key : NeededKeys(what)) {
    if (!value.Has(key)) return KeyError(JsonPath(key), "is missing.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SampleRow> ReadSampleRow(const JsonValue& value) {
  if (!value.is_object()) return WrongType("", value, "an object");
  SampleRow row;
  bool has_kind = false;
  for (const JsonValue member : value) {
    if (member.key() != "what") continue;
    GPUSHARE_RETURN_IF_ERROR(ReadField<SampleRow>({"what", kWhat}, member, "what", row));
    has_kind = true;
  }
  if (!has_kind) return KeyError("what", "is missing, and a row must have it.");
  GPUSHARE_RETURN_IF_ERROR(CheckComplete(value, row.what));
  GPUSHARE_RETURN_IF_ERROR(ReadObject<SampleRow>(FieldsOf(row.what), value, "", row));
  for (const CounterValue& counter : row.counters) {
    if (counter.name.empty()) return KeyError("counters", "has a counter without a name.");
  }
  return row;
}

void WriteSampleRow(const SampleRow& row, std::string& out) {
  JsonWriter json(out, -1);
  WriteObject<SampleRow>(FieldsOf(row.what), row, json);
}

}  // namespace gpushare::models
