// The bounds of src/ptx. Beyond one of them a text is refused, or an analysis assumes the worst.
//
// Where in the flow: below every stage of src/ptx.

#ifndef GPUSHARE_SRC_PTX_BASE_LIMITS_H_
#define GPUSHARE_SRC_PTX_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::ptx {

// A module. The largest of 2,616 kernels of compiled networks has 280 KB; 16 MB is 57 times that.
inline constexpr size_t kTextBytesMax = size_t{16} << 20;
inline constexpr size_t kTokensMax = size_t{4} << 20;
inline constexpr uint32_t kScopeDepthMax = 64;           // nested braces
inline constexpr uint32_t kRegisterRangeMax = 1u << 24;  // of `.reg .b32 %r<n>;`
inline constexpr uint32_t kSymbolsMax = 1u << 22;

// Steps of all analyses of one kernel together. The largest kernel of the corpus takes far below a
// tenth; a text made to be slow reaches it after about one second.
inline constexpr uint64_t kAnalysisStepsMax = 30'000'000;

// Places at which threads of a kernel end, where some end before the others' barriers: each gets
// code of its own.
inline constexpr uint32_t kEarlyExitsMax = 64;

// PTX ISA versions and targets that twins are made for.
inline constexpr uint32_t kVersionMajorMin = 7;
inline constexpr uint32_t kVersionMajorMax = 9;
inline constexpr uint32_t kTargetMin = 70;  // ld.relaxed, non-aligned barriers

// Bytes of parameters that a launch takes: PTX ISA, section 'Kernel Function Parameters'.
inline constexpr uint32_t kParametersBytesMax = 4352;
inline constexpr uint32_t kParametersBytesMaxFrom81 = 32764;
inline constexpr uint32_t kStaticSharedBytesMax = 48 * 1024;

// Named barriers of a block: PTX ISA, section 'bar'.
inline constexpr uint32_t kBlockBarriersMax = 16;

}  // namespace gpushare::ptx

#endif  // GPUSHARE_SRC_PTX_BASE_LIMITS_H_
