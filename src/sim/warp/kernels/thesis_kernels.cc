#include "src/sim/warp/kernels/thesis_kernels.h"

#include <array>

namespace gpushare::sim::warp {
namespace {

// One load and one store a thread; between them x = a x + b, unrolled by four ("loops over compute
// instructions a million times").
constexpr absl::string_view kPurelyCompute = R"(warp-trace 1
kernel pc
warps 8
blocks 4
region data 4096
load data block=1024 warp=128
float after=1
loop $0
  float after=4
  float after=1 repeat=3
  int
  int after=1
  control after=1
end
store data block=1024 warp=128 after=4
)";

// Rodinia's dynproc_kernel: a row of minima in shared memory, 20 rows a launch, two barriers a row.
constexpr absl::string_view kPathfinder = R"(warp-trace 1
kernel pf
warps 8
blocks 4
shared_bytes 2048
region wall 67108864
region source 1048576
region result 1048576
loop $0
  int repeat=6
  load source block=1024 warp=128 i=4096
  shared after=1
  barrier
  loop 20
    int repeat=3
    control
    shared repeat=3           # left, up, right
    int after=3,2             # the lesser of left and up
    int after=1,2
    int repeat=2
    load wall block=1024 warp=128 i=327680 j=16384
    int after=1,4
    shared after=1
    barrier
    shared
    shared after=1
    barrier
  end
  store result after=2 block=1024 warp=128 i=4096
end
)";

// PolyBench's 2DConvolution: blocks of 32 x 8 threads, nine loads of a row-major image. A column to
// the left or right touches two lines.
constexpr absl::string_view kConvolution = R"(warp-trace 1
kernel 2dconv
warps 8
blocks 4
region image 67108864
region result 67108864
loop $0
  int repeat=4
  load image lines=2 block=128 warp=16384 i=131072
  load image offset=128 block=128 warp=16384 i=131072
  load image lines=2 offset=128 block=128 warp=16384 i=131072
  load image lines=2 offset=16384 block=128 warp=16384 i=131072
  load image offset=16512 block=128 warp=16384 i=131072
  load image lines=2 offset=16512 block=128 warp=16384 i=131072
  load image lines=2 offset=32768 block=128 warp=16384 i=131072
  load image offset=32896 block=128 warp=16384 i=131072
  load image lines=2 offset=32896 block=128 warp=16384 i=131072
  float after=9
  float after=9,1 repeat=8
  int repeat=2
  store result offset=16512 after=3 block=128 warp=16384 i=131072
  int
  int after=1
  control after=1
end
)";

// The CUDA samples' dxtc: 64 threads compress a tile of 16 pixels. The line through the colours is
// fitted in shared memory; 1,024 permutations are tried, 16 a thread, over 16 colours.
constexpr absl::string_view kDxtc = R"(warp-trace 1
kernel dxtc
warps 2
blocks 16
shared_bytes 1536
region image 16777216
region permutations 4096
region result 1048576
loop $0
  load image sectors=2 block=64 i=1024
  int after=1
  int after=1 repeat=2
  float after=1 repeat=3
  shared after=1
  barrier
  loop 4
    shared
    float after=1
    float repeat=5
    float after=2
    shared after=1
    barrier
  end
  special after=2
  special after=1
  float after=1 repeat=3
  loop 16
    load permutations warp=128 j=256
    int after=1
    loop 16
      int
      int after=1
      shared
      float after=1,2
      float after=2
      float after=3
    end
    special after=1
    float after=1 repeat=8
    int after=1
    control after=1
  end
  shared
  barrier
  loop 6
    shared
    float after=1
    shared after=1
    barrier
  end
  store result sectors=1 block=64 i=1024
end
)";

// The CUDA samples' vectorAdd.
constexpr absl::string_view kVectorAdd = R"(warp-trace 1
kernel vadd
warps 8
blocks 4
region a 67108864
region b 67108864
region c 67108864
loop $0
  int repeat=3
  load a block=1024 warp=128 i=4096
  load b block=1024 warp=128 i=4096
  float after=1,2
  store c after=1 block=1024 warp=128 i=4096
  int
  control after=1
end
)";

// PolyBench's GEMM: blocks of 32 x 8 threads, one result a thread, matrices of 512 x 512, the loop
// over k unrolled by four. A warp reads one element of A and a line of B for each k.
constexpr absl::string_view kGemm = R"(warp-trace 1
kernel gemm
warps 8
blocks 4
region a 1048576
region b 1048576
region c 1048576
loop $0
  int repeat=4
  loop 128
    load a sectors=1 warp=2048 i=16384 j=16
    load b block=128 j=8192
    load a sectors=1 offset=4 warp=2048 i=16384 j=16
    load b offset=2048 block=128 j=8192
    load a sectors=1 offset=8 warp=2048 i=16384 j=16
    load b offset=4096 block=128 j=8192
    load a sectors=1 offset=12 warp=2048 i=16384 j=16
    load b offset=6144 block=128 j=8192
    float after=7
    float after=6,1
    float after=5,1
    float after=4,1
    int repeat=2
    control after=1
  end
  store c after=4 block=128 warp=2048 i=16384
end
)";

// The CUDA samples' histogram256: a histogram a warp in shared memory, four bytes of each word
// counted, bank conflicts by the data; then the block's histograms are added up.
constexpr absl::string_view kHistogram = R"(warp-trace 1
kernel hist
warps 8
blocks 4
shared_bytes 8192
region data 67108864
region result 65536
loop 8
  shared
end
barrier
loop $0
  load data block=1024 warp=128 i=4096
  int after=1
  shared after=1 ways=1-4
  int after=3
  shared after=1 ways=1-4
  int after=5
  shared after=1 ways=1-4
  int after=7
  shared after=1 ways=1-4
  int
  control after=1
end
barrier
loop 8
  shared
  int after=1
end
store result after=1 block=1024 warp=128
)";

// PolyBench's ATAX: tmp = A x, a row a thread, so that a warp touches 32 lines; then y = A^T tmp, a
// column a thread. The sums are kept in global memory, as pointers that may alias ask for.
constexpr absl::string_view kAtax = R"(warp-trace 1
kernel atax
warps 8
blocks 4
region a 67108864
region x 16384
region tmp 4096
region y 4096
loop $0
  int repeat=2
  load a lines=32 sectors=1 stride=16384 block=4194304 warp=524288 i=4
  load x sectors=1 i=4
  float after=1,2
  store tmp after=1 block=1024 warp=128
  control
end
loop $0
  int repeat=2
  load a block=1024 warp=128 i=16384
  load tmp sectors=1 i=4
  float after=1,2
  store y after=1 block=1024 warp=128
  control
end
)";

constexpr std::array<KernelGenerator, 8> kKernels = {{
    {"pc", false, 4000, kPurelyCompute},
    {"pf", false, 24, kPathfinder},
    {"2dconv", false, 128, kConvolution},
    {"dxtc", false, 6, kDxtc},
    {"vadd", true, 256, kVectorAdd},
    {"gemm", true, 4, kGemm},
    {"hist", true, 256, kHistogram},
    {"atax", true, 256, kAtax},
}};

}  // namespace

absl::Span<const KernelGenerator> ThesisKernels() { return kKernels; }

}  // namespace gpushare::sim::warp
