#include "src/sim/warp/kernels/overlap_kernels.h"

#include <algorithm>
#include <array>

namespace gpushare::sim::warp {
namespace {

// Four rotating points a thread: x -= h y, then y += h x. Each needs the result of four
// instructions before, which is the latency of the unit, so one warp can issue in every cycle.
constexpr absl::string_view kFfma = R"(warp-trace 1
kernel ffma
warps 8
blocks 1
loop $0
  float after=4 repeat=128
  int
  control after=1
end
)";

// A copy with 16 bytes a thread: four lines an access, four accesses in flight a warp.
constexpr absl::string_view kStreaming = R"(warp-trace 1
kernel streaming
warps 8
blocks 1
region from 1073741824
region to 1073741824
loop $0
  load from lines=4 warp=512 i=16384
  load from lines=4 offset=4096 warp=512 i=16384
  load from lines=4 offset=8192 warp=512 i=16384
  load from lines=4 offset=12288 warp=512 i=16384
  store to lines=4 after=4 warp=512 i=16384
  store to lines=4 offset=4096 after=4 warp=512 i=16384
  store to lines=4 offset=8192 after=4 warp=512 i=16384
  store to lines=4 offset=12288 after=4 warp=512 i=16384
  int repeat=3
  control after=1
end
)";

// Sine and cosine of a phase, unrolled by four: two special functions and nine other instructions
// an angle.
constexpr absl::string_view kSincos = R"(warp-trace 1
kernel sincos
warps 8
blocks 1
loop $0
  int after=3
  int after=1
  float after=1
  float after=1
  float after=1
  float after=2
  special after=2
  special after=2
  float after=2
  float after=2
  int after=9
end
)";

// Two warpgroups of m64n256k16 products: a product keeps the Tensor core of a scheduler for 128
// cycles, four are in flight, and a tile ends with a wait for them.
constexpr absl::string_view kWgmma = R"(warp-trace 1
kernel wgmma
warps 8
blocks 1
loop $0
  tensor interval=128 latency=144 repeat=4
  int after=1
  int after=1 repeat=3
  control after=1
end
)";

constexpr std::array<KernelGenerator, 4> kKernels = {{
    {"ffma", false, 100, kFfma},
    {"streaming", true, 100, kStreaming},
    {"sincos", false, 100, kSincos},
    {"wgmma", false, 100, kWgmma},
}};

}  // namespace

absl::Span<const KernelGenerator> OverlapKernels() { return kKernels; }

const KernelGenerator* FindOverlapKernel(absl::string_view name) {
  const auto* const found =
      std::find_if(kKernels.begin(), kKernels.end(),
                   [name](const KernelGenerator& kernel) { return kernel.name == name; });
  return found == kKernels.end() ? nullptr : found;
}

}  // namespace gpushare::sim::warp
