// Fuzzes gpushare_place: bytes become arrays of a small cluster, some of whose fields are out of
// order. A call ends in one sentence and writes nothing, or in a placement in which each GPU has
// one LC replica and as many BE instances as it may, and no running instance stops for a new one
// while moves are left. Public headers only.

#include <gpushare/gpushare.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr int32_t kUnwritten = -77;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "place_fuzzer: %s; last error: %s\n", what, gpushare_last_error_message());
  std::abort();
}

// Reads the input; past its end every value is 0.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t Next() { return position_ < size_ ? data_[position_++] : 0; }
  int32_t Below(int32_t limit) { return Next() % limit; }
  // One in 64 is out of order.
  bool Odd() { return Next() % 64 == 63; }
  double Share() {
    static constexpr double kEdges[] = {-1,
                                        2,
                                        1e7,
                                        std::numeric_limits<double>::quiet_NaN(),
                                        std::numeric_limits<double>::infinity(),
                                        5e-324};
    return Odd() ? kEdges[Next() % 6] : Next() / 255.0;
  }
  int64_t Amount() {
    static constexpr int64_t kEdges[] = {-1, INT64_MAX, INT64_MIN, int64_t{1} << 50};
    return Odd() ? kEdges[Next() % 4] : Next();
  }
  int32_t Count(int32_t limit) {
    static constexpr int32_t kEdges[] = {-1, INT32_MAX, INT32_MIN, 100'001};
    return Odd() ? kEdges[Next() % 4] : Below(limit);
  }
  uint32_t Size(uint32_t size) { return Odd() ? Next() * 40u : size; }
  const char* Name(const char* const (&names)[8]) {
    if (!Odd()) return names[Next() % 8];
    static const char* const kBad[] = {nullptr, "", "\xff\xfe"};
    return kBad[Next() % 3];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t position_ = 0;
};

constexpr const char* kGroups[8] = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7"};
constexpr const char* kLcNames[8] = {"l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7"};
constexpr const char* kBeNames[8] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
constexpr const char* kKinds[8] = {"a", "b", "c", "a", "b", "c", "a", "d"};

// Structs at a stride, as those of a later header lie. The library takes the first struct's size
// for the stride, and a wrong one must not lead past the array: behind each array lie zeros.
template <class Struct>
struct Array {
  static constexpr size_t kMost = 4;
  Array() : bytes((kMost + 1) * 16384, 0) {}
  // The structs of `values` that state sizeof(Struct) state the stride instead.
  void Lay(size_t stride) {
    for (size_t i = 0; i < values.size(); ++i) {
      Struct value = values[i];
      if (value.struct_size == sizeof(Struct)) value.struct_size = static_cast<uint32_t>(stride);
      std::memcpy(bytes.data() + i * stride, &value, sizeof(value));
    }
  }
  const Struct* first() const { return reinterpret_cast<const Struct*>(bytes.data()); }
  size_t count() const { return values.size(); }
  std::vector<Struct> values;
  std::vector<uint8_t> bytes;
};

struct Request {
  explicit Request(Bytes& bytes) {
    // Only smaller: no library can detect a size beyond the memory.
    if (bytes.Odd()) options.struct_size = bytes.Next() % sizeof(options);
    options.algorithm = bytes.Odd() ? bytes.Count(9) : bytes.Below(4);
    options.together = bytes.Odd() ? 2 : bytes.Below(2);
    options.be_per_gpu = bytes.Count(5);
    options.ignore_bounds = bytes.Below(8) == 7 ? 1 : 0;
    options.moves_max = bytes.Odd() ? -1 : bytes.Below(4);
    options.seed = bytes.Next();
    options.error_bars = bytes.Share();
    options.risk = bytes.Share();
    options.free_gpu = bytes.Share();
    const auto gpu_count = static_cast<size_t>(1 + bytes.Below(4));
    for (size_t i = 0; i < gpu_count; ++i) {
      gpushare_place_gpu group = {};
      group.struct_size = bytes.Size(sizeof(group));
      group.count = bytes.Odd() ? bytes.Count(4) : 1 + bytes.Below(3);
      group.name = bytes.Odd() ? bytes.Name(kGroups) : kGroups[i];
      group.memory_bytes = bytes.Odd() ? bytes.Amount() : 100 + bytes.Next();
      gpus.values.push_back(group);
    }
    const auto lc_count = static_cast<size_t>(bytes.Below(5));
    for (size_t i = 0; i < lc_count; ++i) {
      gpushare_place_lc app = {};
      app.struct_size = bytes.Size(sizeof(app));
      app.replicas = bytes.Count(4);
      app.name = bytes.Odd() ? bytes.Name(kLcNames) : kLcNames[i];
      app.kind = bytes.Name(kKinds);
      app.load = bytes.Share();
      app.memory_bytes = bytes.Amount();
      app.p99_bound = bytes.Below(2) == 0 ? 0 : 1 + bytes.Share();
      app.target_ns = bytes.Odd() ? bytes.Amount() : 0;
      app.p99_alone_ns = bytes.Amount();
      lc.values.push_back(app);
      if (app.replicas > 0 && app.replicas < 4) slots += static_cast<size_t>(app.replicas);
    }
    const auto be_count = static_cast<size_t>(bytes.Below(5));
    for (size_t i = 0; i < be_count; ++i) {
      gpushare_place_be app = {};
      app.struct_size = bytes.Size(sizeof(app));
      app.instances = bytes.Count(6);
      app.name = bytes.Odd() ? bytes.Name(kBeNames) : kBeNames[i];
      app.kind = bytes.Name(kKinds);
      app.memory_bytes = bytes.Amount();
      app.weight = bytes.Share();
      be.values.push_back(app);
      if (app.instances > 0 && app.instances < 6) slots += static_cast<size_t>(app.instances);
    }
    const auto pair_count = static_cast<size_t>(bytes.Below(5));
    for (size_t i = 0; i < pair_count; ++i) {
      gpushare_place_pair row = {};
      row.struct_size = bytes.Size(sizeof(row));
      row.lc = bytes.Name(kKinds);
      row.be = bytes.Name(kKinds);
      row.load = bytes.Share();
      row.p99_ratio = bytes.Odd() ? bytes.Share() : 1 + bytes.Share() / 8;
      row.p99_error = bytes.Share();
      row.be_rate = bytes.Share();
      row.be_error = bytes.Share();
      pairs.values.push_back(row);
    }
    if (bytes.Below(2) == 1) {
      for (size_t i = 0; i < slots; ++i) running.push_back(bytes.Odd() ? 99 : bytes.Below(8) - 1);
    }
    if (bytes.Odd()) slots = static_cast<size_t>(bytes.Next());
    if (!running.empty()) running.resize(slots, GPUSHARE_NO_GPU);
    gpus.Lay(Stride(bytes, sizeof(gpushare_place_gpu)));
    lc.Lay(Stride(bytes, sizeof(gpushare_place_lc)));
    be.Lay(Stride(bytes, sizeof(gpushare_place_be)));
    pairs.Lay(Stride(bytes, sizeof(gpushare_place_pair)));
  }

  // Half of the arrays are of a later header.
  static size_t Stride(Bytes& bytes, size_t size) {
    const auto more = static_cast<size_t>(bytes.Below(8));
    return size + (more < 4 ? 0 : (more - 3) * 8);
  }

  gpushare_status Place(std::vector<int32_t>& out, gpushare_place_result& result) const {
    return gpushare_place(&options, gpus.first(), gpus.count(), lc.first(), lc.count(), be.first(),
                          be.count(), pairs.first(), pairs.count(),
                          running.empty() ? nullptr : running.data(), out.data(), out.size(),
                          &result);
  }

  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  Array<gpushare_place_gpu> gpus;
  Array<gpushare_place_lc> lc;
  Array<gpushare_place_be> be;
  Array<gpushare_place_pair> pairs;
  std::vector<int32_t> running;
  size_t slots = 0;
};

void ExpectNothingWritten(const std::vector<int32_t>& out, const gpushare_place_result& result) {
  for (const int32_t gpu : out) Require(gpu == kUnwritten, "a refused call wrote out_gpu");
  Require(result.value == 77, "a refused call wrote its result");
  const char* const message = gpushare_last_error_message();
  const size_t length = std::strlen(message);
  Require(length > 0 && (message[length - 1] == '.' || message[length - 1] == '?'),
          "an error is no sentence");
}

void ExpectSound(const Request& request, const std::vector<int32_t>& out,
                 const gpushare_place_result& result) {
  int32_t gpus = 0;
  for (const auto& group : request.gpus.values) gpus += group.count;
  size_t replicas = 0;
  for (const auto& app : request.lc.values) replicas += static_cast<size_t>(app.replicas);
  std::vector<int32_t> lc(static_cast<size_t>(gpus), 0);
  std::vector<int32_t> be(static_cast<size_t>(gpus), 0);
  int64_t placed = 0;
  int64_t moved = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    Require(out[i] >= GPUSHARE_NO_GPU && out[i] < gpus, "an index is of no GPU");
    if (out[i] == GPUSHARE_NO_GPU) continue;
    ++placed;
    ++(i < replicas ? lc : be)[static_cast<size_t>(out[i])];
    if (request.running.empty() || request.running[i] == GPUSHARE_NO_GPU) continue;
    if (request.running[i] == out[i]) continue;
    Require(i >= replicas, "an LC replica moved");
    ++moved;
  }
  const int32_t most = request.options.be_per_gpu == 0 ? 1 : request.options.be_per_gpu;
  for (size_t gpu = 0; gpu < lc.size(); ++gpu) {
    Require(lc[gpu] <= 1, "a GPU has two LC replicas");
    Require(be[gpu] <= most, "a GPU has too many BE instances");
  }
  Require(placed == result.lc_placed + result.be_placed, "the counts differ from the slots");
  Require(moved == result.moved && moved <= request.options.moves_max, "too many moves");
  Require(result.value <= result.upper_bound + 1e-4, "a value is above its bound");
}

// A running instance stops only where the moves are spent, or its app has no place left.
void ExpectOnlyNeededStops(const Request& request, const std::vector<int32_t>& out,
                           const gpushare_place_result& result) {
  if (request.running.empty()) return;
  size_t slot = 0;
  for (const auto& app : request.lc.values) {
    for (int32_t i = 0; i < app.replicas; ++i, ++slot) {
      const int32_t ran = request.running[slot];
      Require(ran == GPUSHARE_NO_GPU || ran == out[slot], "a running LC replica stops");
    }
  }
  for (const auto& app : request.be.values) {
    bool starts = false;
    bool stops = false;
    for (int32_t i = 0; i < app.instances; ++i, ++slot) {
      const bool runs = request.running[slot] != GPUSHARE_NO_GPU;
      const bool placed = out[slot] != GPUSHARE_NO_GPU;
      starts = starts || (!runs && placed);
      stops = stops || (runs && !placed);
    }
    if (!stops || result.moved == request.options.moves_max) continue;
    Require(!starts, "an instance stops for a new one of its app");
    // On a GPU with nothing on it memory alone counts.
    int32_t gpu = 0;
    for (const auto& group : request.gpus.values) {
      for (int32_t i = 0; i < group.count; ++i, ++gpu) {
        const bool empty = std::find(out.begin(), out.end(), gpu) == out.end();
        Require(!empty || group.memory_bytes < app.memory_bytes,
                "an instance stops beside an empty GPU");
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const Request request(bytes);
  std::vector<int32_t> out(request.slots, kUnwritten);
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  result.value = 77;
  if (request.Place(out, result) != GPUSHARE_OK) {
    ExpectNothingWritten(out, result);
    return 0;
  }
  ExpectSound(request, out, result);
  ExpectOnlyNeededStops(request, out, result);
  std::vector<int32_t> again(out.size(), kUnwritten);
  gpushare_place_result second = GPUSHARE_PLACE_RESULT_INIT;
  Require(request.Place(again, second) == GPUSHARE_OK && again == out &&
              std::memcmp(&second, &result, sizeof(result)) == 0,
          "two calls differ");
  return 0;
}
