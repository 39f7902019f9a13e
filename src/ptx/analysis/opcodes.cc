// The table of opcodes. See opcodes.h.

#include "src/ptx/analysis/opcodes.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace gpushare::ptx {
namespace {

constexpr bool kNoResult = false;

constexpr Opcode Refused(std::string_view name, Reason reason) {
  return {name, OpKind::kRefused, kNoResult, AsyncKind::kNone, reason};
}

// Sorted by name. Source: PTX ISA 9.0, chapter 9.7.
constexpr auto kOpcodes = std::to_array<Opcode>({
    {"abs"},
    {"activemask", OpKind::kVaries},
    {"add", OpKind::kAdd},
    {"addc"},
    {"and"},
    {"applypriority", OpKind::kPlain, kNoResult},
    {"atom", OpKind::kAtomic},
    {"bar", OpKind::kBarrier, kNoResult},
    {"bar.red", OpKind::kBarrier},
    {"bar.warp.sync", OpKind::kWarp, kNoResult},
    {"barrier", OpKind::kBarrier, kNoResult},
    Refused("barrier.cluster", Reason::kCluster),
    {"barrier.cta.red", OpKind::kBarrier},
    {"barrier.red", OpKind::kBarrier},
    {"bfe"},
    {"bfi"},
    {"bfind"},
    {"bmsk"},
    {"bra", OpKind::kBranch, kNoResult},
    {"brev"},
    {"brkpt", OpKind::kPlain, kNoResult},
    {"brx.idx", OpKind::kBranch, kNoResult},
    {"call", OpKind::kCall, kNoResult},
    {"clz"},
    {"cnot"},
    {"copysign"},
    {"cos"},
    {"cp.async", OpKind::kPlain, kNoResult, AsyncKind::kCopy},
    {"cp.async.bulk", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"cp.async.bulk.commit_group", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"cp.async.bulk.prefetch", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"cp.async.bulk.tensor", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"cp.async.bulk.wait_group", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"cp.async.commit_group", OpKind::kPlain, kNoResult, AsyncKind::kCopy},
    {"cp.async.mbarrier.arrive", OpKind::kPlain, kNoResult, AsyncKind::kCopy},
    {"cp.async.wait_all", OpKind::kPlain, kNoResult, AsyncKind::kCopy},
    {"cp.async.wait_group", OpKind::kPlain, kNoResult, AsyncKind::kCopy},
    {"cp.reduce.async.bulk", OpKind::kPlain, kNoResult, AsyncKind::kBulk},
    {"createpolicy"},
    {"cvt"},
    {"cvta"},
    {"discard", OpKind::kPlain, kNoResult},
    {"div"},
    {"dp2a"},
    {"dp4a"},
    {"elect.sync", OpKind::kWarp},
    {"ex2"},
    {"exit", OpKind::kExit, kNoResult},
    {"fence", OpKind::kPlain, kNoResult},
    {"fma"},
    {"fns"},
    Refused("getctarank", Reason::kCluster),
    {"griddepcontrol", OpKind::kPlain, kNoResult},
    {"isspacep"},
    {"istypep"},
    {"ld", OpKind::kLoad},
    {"ldmatrix", OpKind::kWarp},
    {"ldu", OpKind::kLoad},
    {"lg2"},
    {"lop3"},
    {"mad"},
    {"mad24"},
    {"madc"},
    Refused("mapa", Reason::kCluster),
    {"match.all.sync", OpKind::kWarpSame},
    {"match.any.sync", OpKind::kWarp},
    {"max"},
    {"mbarrier.arrive", OpKind::kVaries},
    {"mbarrier.arrive_drop", OpKind::kVaries},
    {"mbarrier.complete_tx", OpKind::kPlain, kNoResult},
    {"mbarrier.expect_tx", OpKind::kPlain, kNoResult},
    {"mbarrier.init", OpKind::kMbarrierInit, kNoResult},
    {"mbarrier.inval", OpKind::kMbarrierInval, kNoResult},
    {"mbarrier.pending_count"},
    {"mbarrier.test_wait", OpKind::kVaries},
    {"mbarrier.try_wait", OpKind::kVaries},
    {"membar", OpKind::kPlain, kNoResult},
    {"min"},
    {"mma", OpKind::kWarp},
    {"mov", OpKind::kMove},
    {"movmatrix", OpKind::kWarp},
    {"mul"},
    {"mul24"},
    {"nanosleep", OpKind::kPlain, kNoResult},
    {"neg"},
    {"not"},
    {"or"},
    {"pmevent", OpKind::kPlain, kNoResult},
    {"popc"},
    {"prefetch", OpKind::kPlain, kNoResult},
    {"prefetchu", OpKind::kPlain, kNoResult},
    {"prmt"},
    {"rcp"},
    {"red", OpKind::kPlain, kNoResult},
    Refused("red.async", Reason::kCluster),
    {"redux.sync", OpKind::kWarpSame},
    {"rem"},
    {"ret", OpKind::kExit, kNoResult},
    {"rsqrt"},
    {"sad"},
    {"selp"},
    {"set"},
    Refused("setmaxnreg", Reason::kSetMaxNReg),
    {"setp"},
    {"shf"},
    {"shfl.sync", OpKind::kWarp},
    {"shl"},
    {"shr"},
    {"sin"},
    {"slct"},
    {"sqrt"},
    {"st", OpKind::kPlain, kNoResult},
    Refused("st.async", Reason::kCluster),
    {"stmatrix", OpKind::kWarp, kNoResult},
    {"sub"},
    {"subc"},
    {"szext"},
    {"tanh"},
    {"tensormap.cp_fenceproxy", OpKind::kWarp, kNoResult},
    {"tensormap.replace", OpKind::kPlain, kNoResult},
    {"testp"},
    {"tex", OpKind::kVaries},
    {"tld4", OpKind::kVaries},
    {"trap", OpKind::kTrap, kNoResult},
    {"vabsdiff"},
    {"vabsdiff2"},
    {"vabsdiff4"},
    {"vadd"},
    {"vadd2"},
    {"vadd4"},
    {"vavrg2"},
    {"vavrg4"},
    {"vmad"},
    {"vmax"},
    {"vmax2"},
    {"vmax4"},
    {"vmin"},
    {"vmin2"},
    {"vmin4"},
    {"vote.sync", OpKind::kWarpSame},
    {"vote.sync.ballot", OpKind::kWarpSame},
    {"vset"},
    {"vset2"},
    {"vset4"},
    {"vshl"},
    {"vshr"},
    {"vsub"},
    {"vsub2"},
    {"vsub4"},
    {"wgmma.commit_group", OpKind::kWarp, kNoResult},
    {"wgmma.fence", OpKind::kWarp, kNoResult},
    {"wgmma.mma_async", OpKind::kWarp},
    {"wgmma.wait_group", OpKind::kWarp, kNoResult},
    {"wmma.load", OpKind::kWarp},
    {"wmma.mma", OpKind::kWarp},
    {"wmma.store", OpKind::kWarp, kNoResult},
    {"xor"},
});

constexpr bool IsSorted() {
  for (size_t i = 1; i < kOpcodes.size(); ++i) {
    if (!(kOpcodes[i - 1].name < kOpcodes[i].name)) return false;
  }
  return true;
}
static_assert(IsSorted(), "FindOpcode searches by halves");

}  // namespace

const Opcode* FindOpcode(std::string_view written) {
  for (;;) {
    const auto* const row =
        std::lower_bound(kOpcodes.begin(), kOpcodes.end(), written,
                         [](const Opcode& o, std::string_view name) { return o.name < name; });
    if (row != kOpcodes.end() && row->name == written) return row;
    const size_t dot = written.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    written = written.substr(0, dot);
  }
}

bool HasModifier(std::string_view written, std::string_view modifier) {
  for (size_t dot = written.find('.'); dot != std::string_view::npos;) {
    const size_t next = written.find('.', dot + 1);
    if (written.substr(dot + 1, next == std::string_view::npos ? next : next - dot - 1) ==
        modifier) {
      return true;
    }
    dot = next;
  }
  return false;
}

}  // namespace gpushare::ptx
