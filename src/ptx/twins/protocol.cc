// The worker and slice protocols as PTX. See protocol.h.

#include "src/ptx/twins/protocol.h"

#include <gpushare/device/launch.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpushare::ptx {
namespace {

// A word in angle brackets of the texts below, and what stands for it: an offset, of a field of the
// launch header behind the header's name.
enum class FieldOf : uint8_t { kLaunch, kOtherLaunch, kRecord };
struct Field {
  std::string_view name;
  FieldOf of;
  size_t offset;
};

#define GPUSHARE_PTX_LAUNCH(name) \
  Field { #name, FieldOf::kLaunch, offsetof(gpushare_worker_launch, name) }
constexpr std::array kFields = {
    GPUSHARE_PTX_LAUNCH(eviction_word),
    GPUSHARE_PTX_LAUNCH(counter),
    GPUSHARE_PTX_LAUNCH(retired_counter),
    GPUSHARE_PTX_LAUNCH(scratch),
    GPUSHARE_PTX_LAUNCH(completion),
    GPUSHARE_PTX_LAUNCH(sequence),
    GPUSHARE_PTX_LAUNCH(epoch),
    GPUSHARE_PTX_LAUNCH(block_begin),
    GPUSHARE_PTX_LAUNCH(block_count),
    GPUSHARE_PTX_LAUNCH(grid_x),
    GPUSHARE_PTX_LAUNCH(grid_y),
    GPUSHARE_PTX_LAUNCH(grid_z),
    GPUSHARE_PTX_LAUNCH(claim_batch),
    GPUSHARE_PTX_LAUNCH(sm_first),
    GPUSHARE_PTX_LAUNCH(sm_count),
    GPUSHARE_PTX_LAUNCH(workers_per_sm),
    GPUSHARE_PTX_LAUNCH(sm_workers),
    GPUSHARE_PTX_LAUNCH(host_eviction_word),
    Field{"other_host_eviction_word", FieldOf::kOtherLaunch,
          offsetof(gpushare_worker_launch, host_eviction_word)},
    Field{"s_start", FieldOf::kRecord, offsetof(gpushare_worker_scratch, start_globaltimer_ns)},
    Field{"s_ended", FieldOf::kRecord, offsetof(gpushare_worker_scratch, ended_sequence)},
    Field{"c_start", FieldOf::kRecord, offsetof(gpushare_worker_completion, start_globaltimer_ns)},
    Field{"c_end", FieldOf::kRecord, offsetof(gpushare_worker_completion, end_globaltimer_ns)},
    Field{"c_done", FieldOf::kRecord, offsetof(gpushare_worker_completion, block_tasks_done)},
    Field{"c_left", FieldOf::kRecord, offsetof(gpushare_worker_completion, block_tasks_left)},
    Field{"c_sequence", FieldOf::kRecord, offsetof(gpushare_worker_completion, sequence)},
};
#undef GPUSHARE_PTX_LAUNCH
static_assert(sizeof(gpushare_worker_launch) == 128);
static_assert(offsetof(gpushare_worker_scratch, finished) == 0);

// What stands for the word in angle brackets; `@N` is byte N of the worker's words.
std::string SpellField(std::string_view name, const WorkerPlace& place) {
  if (name.starts_with('@')) {
    uint32_t of_word = 0;
    for (const char c : name.substr(1)) of_word = of_word * 10 + static_cast<uint32_t>(c - '0');
    return place.shared + "+" + std::to_string(place.shared_offset + of_word);
  }
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    std::string offset = std::to_string(field.offset);
    if (field.of == FieldOf::kRecord) return offset;
    return (field.of == FieldOf::kLaunch ? place.launch : place.other_launch) + "+" + offset;
  }
  return {};
}

// Replaces `~` by `%gpushare_`, `$` by `$gpushare_`, and `<field>` by its place.
std::string Spell(std::string_view text, const WorkerPlace& place) {
  std::string out;
  out.reserve(text.size() * 2);
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '~') {
      out += "%gpushare_";
    } else if (c == '$') {
      out += "$gpushare_";
    } else if (c == '<' && (text[at + 1] >= 'a' || text[at + 1] == '@')) {
      const size_t end = text.find('>', at);
      out += SpellField(text.substr(at + 1, end - at - 1), place);
      at = end;
    } else {
      out += c;
    }
  }
  return out;
}

// The places of a worker's shared memory: two claims of 16 bytes (block index and a flag that is
// negative when the worker leaves), then what its first thread keeps.
//   +32 next block task of the claim, +36 its end, +44 counted SM plus 1,
//   +40 block tasks executed; negative: the worker may not stay
constexpr std::string_view kRegisters = R"(
  .reg .pred ~p<4>;
  .reg .b32 ~r<10>;
  .reg .b64 ~d<8>;
  .reg .b32 ~x;
  .reg .b32 ~y;
  .reg .b32 ~z;
  .reg .b32 ~n;
  .reg .b32 ~slot;
)";

constexpr std::string_view kFlatThread = R"(  mov.u32 ~r0, %tid.x;
  setp.ne.u32 ~p0, ~r0, 0;
)";
constexpr std::string_view kDeepThread = R"(  mov.u32 ~r0, %tid.x;
  mov.u32 ~r1, %tid.y;
  or.b32 ~r0, ~r0, ~r1;
  mov.u32 ~r1, %tid.z;
  or.b32 ~r0, ~r0, ~r1;
  setp.ne.u32 ~p0, ~r0, 0;
)";

constexpr std::string_view kReportStart = R"(  ld.param.u64 ~d0, [<scratch>];
  setp.eq.s64 ~p1, ~d0, 0;
  @~p1 bra $started;
  mov.u64 ~d1, %globaltimer;
  st.volatile.u64 [~d0+<s_start>], ~d1;
$started:
)";

// First thread: MayStay of worker.cuh. All ways lead to $head, and all ways of the first thread
// from there to $wait: only from parts with one way in and one out does the assembler bring the
// threads of a warp together again, and what follows needs that (barriers, matrix and warp
// instructions).
constexpr std::string_view kMayStay = R"(  ld.param.u32 ~r3, [<sm_count>];
  ld.param.u64 ~d1, [<sm_workers>];
  setp.ne.u32 ~p1, ~r3, 0;
  setp.ne.or.s64 ~p1, ~d1, 0, ~p1;
  @!~p1 bra $head;
  mov.u32 ~r4, %smid;
  setp.eq.u32 ~p1, ~r3, 0;
  @~p1 bra $count;
  ld.param.u32 ~r5, [<sm_first>];
  sub.u32 ~r5, ~r4, ~r5;
  setp.ge.u32 ~p1, ~r5, ~r3;
  @~p1 bra $turned;
$count:
  ld.param.u32 ~r5, [<workers_per_sm>];
  setp.eq.s64 ~p1, ~d1, 0;
  setp.eq.or.u32 ~p1, ~r5, 0, ~p1;
  @~p1 bra $head;
  add.u32 ~r6, ~r4, 1;
  st.shared.u32 [<@44>], ~r6;
  mul.wide.u32 ~d2, ~r4, 4;
  add.s64 ~d1, ~d1, ~d2;
  atom.add.u32 ~r6, [~d1], 1;
  setp.ge.u32 ~p1, ~r6, ~r5;
  @!~p1 bra $head;
$turned:
  mov.u32 ~r6, 0x80000000;
  st.shared.u32 [<@40>], ~r6;
)";

// First thread: the rest of its claim, else TakeClaim of worker.cuh. ~r2: next, ~r3: end.
constexpr std::string_view kClaim =
    R"(  ld.shared.v4.u32 {~r2, ~r3, ~r4, ~r5}, [<@32>];
  setp.lt.s32 ~p1, ~r4, 0;
  @~p1 bra $none;
  setp.lt.u32 ~p1, ~r2, ~r3;
  @~p1 bra $publish;
)";
constexpr std::string_view kClaimMore = R"(  ld.param.u64 ~d1, [<counter>];
  setp.ne.s64 ~p1, ~d1, 0;
  @~p1 bra $look;
  ld.shared.u32 ~r4, [<@40>];
  setp.ne.u32 ~p1, ~r4, 0;
  @~p1 bra $none;
  ld.param.u32 ~r4, [<block_count>];
  setp.ge.u32 ~p1, ~r1, ~r4;
  @~p1 bra $none;
  ld.param.u32 ~r4, [<block_begin>];
  add.u32 ~r2, ~r4, ~r1;
  add.u32 ~r3, ~r2, 1;
  bra $publish;
$look:
  ld.param.u64 ~d0, [<eviction_word>];
  setp.eq.s64 ~p1, ~d0, 0;
  @~p1 bra $claim;
  ld.relaxed.sys.global.u64 ~d2, [~d0];
  cvt.u32.u64 ~r4, ~d2;
  shr.u64 ~d2, ~d2, 32;
  cvt.u32.u64 ~r5, ~d2;
  ld.param.u32 ~r6, [<epoch>];
  sub.s32 ~r5, ~r5, ~r6;
  setp.ge.s32 ~p1, ~r5, 0;
  setp.ge.and.u32 ~p1, ~r1, ~r4, ~p1;
  @~p1 bra $none;
$claim:
  ld.param.u32 ~r4, [<claim_batch>];
  max.u32 ~r4, ~r4, 1;
  atom.add.u32 ~r5, [~d1], ~r4;
  ld.param.u32 ~r6, [<block_count>];
  setp.ge.u32 ~p1, ~r5, ~r6;
  @~p1 bra $none;
  sub.u32 ~r6, ~r6, ~r5;
  min.u32 ~r6, ~r6, ~r4;
  ld.param.u32 ~r4, [<block_begin>];
  add.u32 ~r2, ~r4, ~r5;
  add.u32 ~r3, ~r2, ~r6;
)";

constexpr std::string_view kPublish = R"($publish:
  add.u32 ~r4, ~r2, 1;
  st.shared.v2.u32 [<@32>], {~r4, ~r3};
  ld.shared.u32 ~r4, [<@40>];
  add.u32 ~r4, ~r4, 1;
  st.shared.u32 [<@40>], ~r4;
)";

// BlockOf of block_task.cuh. In ~r2: a block task. Out ~x, ~y, ~z: its place in the grid.
constexpr std::string_view kBlockOf = R"(  mov.u32 ~x, ~r2;
  mov.u32 ~y, 0;
  mov.u32 ~z, 0;
  ld.param.u32 ~r4, [<grid_x>];
  setp.lt.u32 ~p1, ~r2, ~r4;
  @~p1 bra $placed;
  div.u32 ~r5, ~r2, ~r4;
  mul.lo.u32 ~r6, ~r5, ~r4;
  sub.u32 ~x, ~r2, ~r6;
  ld.param.u32 ~r4, [<grid_y>];
  div.u32 ~z, ~r5, ~r4;
  mul.lo.u32 ~r6, ~z, ~r4;
  sub.u32 ~y, ~r5, ~r6;
$placed:
)";

constexpr std::string_view kNone = R"(  mov.u32 ~r4, 0;
  st.shared.v4.u32 [~slot], {~x, ~y, ~z, ~r4};
  bra $wait;
$none:
  mov.u32 ~r4, -1;
  st.shared.u32 [~slot+12], ~r4;
$wait:
)";

// Behind the barrier all threads read the claim; the next one goes to the other place.
constexpr std::string_view kTakePlace = R"(  ld.shared.v4.u32 {~x, ~y, ~z, ~r4}, [~slot];
  xor.b32 ~slot, ~slot, 16;
  setp.lt.s32 ~p1, ~r4, 0;
  @~p1 bra $leave;
  // gpushare: the body
)";

// First thread: ReportEnd of completion.cuh. In ~r1: workers, ~r2: block tasks executed.
constexpr std::string_view kReportEnd = R"(  ld.param.u64 ~d0, [<scratch>];
  setp.eq.s64 ~p1, ~d0, 0;
  @~p1 ret;
  membar.gl;
  cvt.u64.u32 ~d1, ~r2;
  or.b64 ~d1, ~d1, 1099511627776;
  atom.add.u64 ~d2, [~d0], ~d1;
  add.u64 ~d2, ~d2, ~d1;
  shr.u64 ~d3, ~d2, 40;
  cvt.u32.u64 ~r3, ~d3;
  setp.ne.u32 ~p1, ~r3, ~r1;
  @~p1 ret;
  membar.gl;
  ld.volatile.u64 ~d3, [~d0+<s_start>];
  mov.u64 ~d4, 0;
  st.volatile.u64 [~d0], ~d4;
  st.volatile.u64 [~d0+<s_start>], ~d4;
  ld.param.u64 ~d5, [<sequence>];
  st.volatile.u64 [~d0+<s_ended>], ~d5;
  ld.param.u64 ~d1, [<retired_counter>];
  setp.eq.s64 ~p1, ~d1, 0;
  @~p1 bra $retired;
  mov.u32 ~r3, 0;
  st.volatile.u32 [~d1], ~r3;
$retired:
  membar.gl;
  ld.param.u64 ~d0, [<completion>];
  setp.eq.s64 ~p1, ~d0, 0;
  @~p1 ret;
  mov.u32 ~r4, 0;
  ld.param.u64 ~d1, [<counter>];
  setp.eq.s64 ~p1, ~d1, 0;
  @~p1 bra $left;
  ld.volatile.u32 ~r5, [~d1];
  ld.param.u32 ~r6, [<block_count>];
  min.u32 ~r5, ~r5, ~r6;
  sub.u32 ~r4, ~r6, ~r5;
$left:
  st.volatile.u64 [~d0+<c_start>], ~d3;
  mov.u64 ~d1, %globaltimer;
  st.volatile.u64 [~d0+<c_end>], ~d1;
  cvt.u32.u64 ~r5, ~d2;
  st.volatile.u32 [~d0+<c_done>], ~r5;
  st.volatile.u32 [~d0+<c_left>], ~r4;
  membar.sys;
  st.release.sys.u64 [~d0+<c_sequence>], ~d5;
  ret;
)";

// First thread: ReleaseSm of worker.cuh.
constexpr std::string_view kReleaseSm = R"(  ld.shared.u32 ~r3, [<@44>];
  setp.eq.u32 ~p1, ~r3, 0;
  @~p1 bra $released;
  sub.u32 ~r3, ~r3, 1;
  ld.param.u64 ~d1, [<sm_workers>];
  mul.wide.u32 ~d2, ~r3, 4;
  add.s64 ~d1, ~d1, ~d2;
  atom.add.u32 ~r3, [~d1], -1;
$released:
)";

// RelayEvictions of leader.cuh: the leader's first thread copies the host's word to the device's.
// Of a fused block's two parts perhaps one has no word to copy.
constexpr std::string_view kRelay = R"($relay:
  @~p0 ret;
  ld.param.u64 ~d0, [<eviction_word>];
  ld.param.u64 ~d1, [<host_eviction_word>];
  setp.eq.s64 ~p1, ~d1, 0;
  @~p1 ret;
  ld.param.u64 ~d2, [<scratch>];
  ld.param.u64 ~d3, [<sequence>];
  ld.param.u32 ~r1, [<epoch>];
  mov.u64 ~d4, %globaltimer;
  add.u64 ~d4, ~d4, 3600000000000;
  ld.volatile.u64 ~d5, [~d0];
$rounds:
  mov.u32 ~r2, 1024;
$poll:
  ld.relaxed.sys.u64 ~d6, [~d1];
  setp.ne.s64 ~p1, ~d6, ~d5;
  @~p1 st.volatile.u64 [~d0], ~d6;
  mov.u64 ~d5, ~d6;
  ld.volatile.u64 ~d7, [~d2+<s_ended>];
  ld.relaxed.sys.u64 ~d6, [~d1];
  setp.ne.s64 ~p1, ~d6, ~d5;
  @~p1 st.volatile.u64 [~d0], ~d6;
  mov.u64 ~d5, ~d6;
  setp.eq.s64 ~p1, ~d7, ~d3;
  cvt.u32.u64 ~r3, ~d6;
  shr.u64 ~d7, ~d6, 32;
  cvt.u32.u64 ~r4, ~d7;
  sub.s32 ~r4, ~r4, ~r1;
  setp.ge.s32 ~p2, ~r4, 0;
  setp.eq.and.u32 ~p2, ~r3, 0, ~p2;
  or.pred ~p1, ~p1, ~p2;
  @~p1 ret;
  sub.u32 ~r2, ~r2, 1;
  setp.ne.u32 ~p1, ~r2, 0;
  @~p1 bra $poll;
  mov.u64 ~d7, %globaltimer;
  setp.le.u64 ~p1, ~d7, ~d4;
  @~p1 bra $rounds;
  ret;
)";

// ~p0: not the first thread.
std::string Thread(const ProtocolChoices& choices) {
  if (choices.place.threads > 0) {
    return FindThread(choices.place) + "\tsetp.ne.u32 ~p0, ~r0, 0;\n";
  }
  return std::string(choices.flat_block ? kFlatThread : kDeepThread);
}

std::string LoopBarrier(const ProtocolChoices& choices) {
  return "\tbar.sync " + OperandsOfBarrier(choices.place, choices.barrier) + ";\n";
}

// A thread that has ended joins the barriers of the body until no thread is in the body any more.
std::string Drain(const ProtocolChoices& choices, const std::string& label) {
  return "\tsetp.ne.u32 ~p2, 0, 0;\n" + label + ":\n\tbarrier.red.or.pred ~p1, " +
         OperandsOfBarrier(choices.place, choices.barrier) + ", ~p2;\n\t@~p1 bra " + label + ";\n";
}

// Behind the body. With early exits each exit has a drain of its own: threads of a warp that share
// one come together in front of it, so that those that have ended would wait there for those in the
// body, which wait for them at a barrier.
std::string EndOfBody(const ProtocolChoices& choices) {
  if (!choices.early_exits) return "\n$done:\n";
  std::string text = "\n" + Drain(choices, "$drain");
  for (uint32_t exit = 0; exit < choices.exits; ++exit) {
    const std::string number = std::to_string(exit);
    text += "\tbra $done;\n$ended" + number + ":\n" + Drain(choices, "$drain" + number);
  }
  return text + "$done:\n";
}

// In the body ~p2 is true: this thread has not ended.
std::string InBody(const ProtocolChoices& choices) {
  return choices.early_exits ? "\tsetp.eq.u32 ~p2, 0, 0;\n" : "";
}

std::string Waits(const ProtocolChoices& choices) {
  std::string waits;
  if (choices.copies) waits += "\tcp.async.wait_all;\n";
  if (choices.bulk_copies) {
    waits += "\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;\n";
  }
  return waits;
}

}  // namespace

Refusal CheckReservedNames(std::string_view text) {
  const size_t at = text.find(kReservedName);
  if (at == std::string_view::npos) return {};
  const auto line = static_cast<uint32_t>(1 + std::count(text.begin(), text.begin() + at, '\n'));
  return {Reason::kAlreadyTwin, line,
          "Line " + std::to_string(line) + " has a name with '" + std::string(kReservedName) +
              "', which only twins have."};
}

Surroundings WorkerSurroundings(const ProtocolChoices& choices) {
  const WorkerPlace& place = choices.place;
  std::string before(kRegisters);
  if (choices.shared_bytes > 0) {
    before +=
        "\t.shared .align 32 .b8 gpushare_shared[" + std::to_string(choices.shared_bytes) + "];\n";
  }
  before += choices.start + Thread(choices) + FindWords(place, "slot") + FindWorker(place);
  // The leader's block has index -1 here, and no worker.
  before += R"(  setp.lt.s32 ~p1, ~r1, 0;
  @~p1 bra $relay;
  @~p0 bra $head;
  mov.u32 ~r3, 0;
  st.shared.v4.u32 [<@32>], {~r3, ~r3, ~r3, ~r3};
)";
  before += FindWorker(place);
  before += "\tsetp.ne.u32 ~p1, ~r1, 0;\n\t@~p1 bra $started;\n";
  before += kReportStart;
  before += kMayStay;
  before += "$head:\n\t.pragma \"nounroll\";\n" + Thread(choices) + "\t@~p0 bra $wait;\n";
  before += kClaim;
  before += FindWorker(place);
  before += kClaimMore;
  before += kPublish;
  before += kBlockOf;
  before += kNone;
  before += LoopBarrier(choices);
  before += kTakePlace;
  before += choices.in_body + InBody(choices);
  std::string behind = EndOfBody(choices) + Waits(choices) + "\tbra.uni $head;\n$leave:\n" +
                       Thread(choices) + "\t@~p0 ret;\n";
  behind += kReleaseSm;
  behind += CountWorkers(place);
  behind += "\tld.shared.u32 ~r2, [<@40>];\n\tand.b32 ~r2, ~r2, 0x7fffffff;\n";
  behind += kReportEnd;
  behind += kRelay;
  return {Spell(before, choices.place), Spell(behind, choices.place)};
}

Surroundings SliceSurroundings(const ProtocolChoices& choices) {
  std::string before(kRegisters);
  before += Thread(choices);
  before += R"(  mov.u32 ~r2, %ctaid.x;
  setp.ne.or.u32 ~p1, ~r2, 0, ~p0;
  @~p1 bra $started;
)";
  before += kReportStart;
  before += R"(  ld.param.u32 ~r3, [<block_count>];
  setp.ge.u32 ~p1, ~r2, ~r3;
  @~p1 bra $done;
  ld.param.u32 ~r3, [<block_begin>];
  add.u32 ~r2, ~r3, ~r2;
)";
  before += kBlockOf;
  before += "\t// gpushare: the body\n" + InBody(choices);
  std::string behind = EndOfBody(choices) + Waits(choices);
  behind += R"(  ld.param.u64 ~d0, [<scratch>];
  setp.eq.s64 ~p1, ~d0, 0;
  @~p1 ret;
)";
  behind += LoopBarrier(choices) + Thread(choices) + "\t@~p0 ret;\n";
  behind += R"(  mov.u32 ~r1, %nctaid.x;
  mov.u32 ~r2, %ctaid.x;
  ld.param.u32 ~r3, [<block_count>];
  setp.lt.u32 ~p1, ~r2, ~r3;
  selp.u32 ~r2, 1, 0, ~p1;
)";
  behind += kReportEnd;
  return {Spell(before, choices.place), Spell(behind, choices.place)};
}

std::string EndOfBlockTask(const ProtocolChoices& choices, uint32_t exit) {
  return Spell(choices.early_exits ? "$ended" + std::to_string(exit) : "$done", choices.place);
}

std::string BodyText(std::string_view text, const WorkerPlace& place) { return Spell(text, place); }

// The result is always true here. A barrier with a count has it read: where nobody does, ptxas of
// CUDA 13.0 leaves it out of the code that a divided warp shares, and threads of that warp that
// wait in a drain never get theirs.
std::string JoinedBarrier(const ProtocolChoices& choices) {
  std::string text =
      "barrier.red.or.pred ~p3, " + OperandsOfBarrier(choices.place, choices.barrier) + ", ~p2;";
  if (choices.place.threads > 0) text += "\n\t@!~p3 bra $done;";
  return Spell(text, choices.place);
}

std::string ReadGridSize(char dimension, const WorkerPlace& place) {
  return Spell(std::string("ld.param.u32 ~n, [<grid_") + dimension + ">];\n\t", place);
}

}  // namespace gpushare::ptx
