// The table of special registers: what a twin does about each.
//
// Where in the flow: below divergence, checks and transforms.

#ifndef GPUSHARE_SRC_PTX_ANALYSIS_SPECIAL_REGISTERS_H_
#define GPUSHARE_SRC_PTX_ANALYSIS_SPECIAL_REGISTERS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace gpushare::ptx {

enum class SpecialUse : uint8_t {
  kThreadX,     // the thread's index, x
  kThread,      // differs among threads
  kWarp,        // differs among warps
  kSame,        // the same in a block, and the same in a twin
  kBlockIndex,  // %ctaid: the twin has its own
  kGridSize,    // %nctaid: the header has it
  kRefused,     // differs in a worker: its SM, its launch, or what its block was given
  kCluster,
};

struct SpecialRegister {
  std::string_view name;  // with its dimension, if it has one
  SpecialUse use;
};

// Source: PTX ISA 9.0, chapter 10. What is not here is refused.
inline constexpr auto kSpecialRegisters = std::to_array<SpecialRegister>({
    {"%tid.x", SpecialUse::kThreadX},
    {"%tid.y", SpecialUse::kThread},
    {"%tid.z", SpecialUse::kThread},
    {"%ntid.x", SpecialUse::kSame},
    {"%ntid.y", SpecialUse::kSame},
    {"%ntid.z", SpecialUse::kSame},
    {"%laneid", SpecialUse::kThread},
    {"%warpid", SpecialUse::kWarp},
    {"%nwarpid", SpecialUse::kSame},
    {"%ctaid.x", SpecialUse::kBlockIndex},
    {"%ctaid.y", SpecialUse::kBlockIndex},
    {"%ctaid.z", SpecialUse::kBlockIndex},
    {"%nctaid.x", SpecialUse::kGridSize},
    {"%nctaid.y", SpecialUse::kGridSize},
    {"%nctaid.z", SpecialUse::kGridSize},
    {"%lanemask_eq", SpecialUse::kThread},
    {"%lanemask_le", SpecialUse::kThread},
    {"%lanemask_lt", SpecialUse::kThread},
    {"%lanemask_ge", SpecialUse::kThread},
    {"%lanemask_gt", SpecialUse::kThread},
    {"%clock", SpecialUse::kThread},
    {"%clock_hi", SpecialUse::kThread},
    {"%clock64", SpecialUse::kThread},
    {"%globaltimer", SpecialUse::kThread},
    {"%globaltimer_lo", SpecialUse::kThread},
    {"%globaltimer_hi", SpecialUse::kThread},
    {"%dynamic_smem_size", SpecialUse::kSame},
    {"%smid", SpecialUse::kRefused},
    {"%nsmid", SpecialUse::kRefused},
    {"%gridid", SpecialUse::kRefused},
    {"%total_smem_size", SpecialUse::kRefused},
    {"%aggr_smem_size", SpecialUse::kRefused},
    {"%current_graph_exec", SpecialUse::kRefused},
    {"%is_explicit_cluster", SpecialUse::kCluster},
});

inline const SpecialRegister* FindSpecial(std::string_view name) {
  if (name.empty() || name.front() != '%') return nullptr;
  const auto* const row =
      std::find_if(kSpecialRegisters.begin(), kSpecialRegisters.end(),
                   [name](const SpecialRegister& special) { return special.name == name; });
  if (row != kSpecialRegisters.end()) return row;
  static constexpr SpecialRegister kCluster = {"%cluster", SpecialUse::kCluster};
  static constexpr SpecialRegister kOther = {"%", SpecialUse::kRefused};
  if (name.starts_with("%cluster") || name.starts_with("%ncluster")) return &kCluster;
  constexpr std::array<std::string_view, 5> kOthers = {"%envreg", "%pm", "%reserved_smem", "%tid",
                                                       "%ctaid"};
  for (const std::string_view other : kOthers) {
    if (name.starts_with(other)) return &kOther;
  }
  return name == "%nctaid" || name == "%ntid" ? &kOther : nullptr;
}

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_ANALYSIS_SPECIAL_REGISTERS_H_
