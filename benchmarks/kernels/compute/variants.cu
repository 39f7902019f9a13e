// The variants of every body of this folder.

#include <gpushare/device/variants.cuh>

#include "benchmarks/kernels/compute/cp.cuh"
#include "benchmarks/kernels/compute/cutcp.cuh"
#include "benchmarks/kernels/compute/ffma.cuh"
#include "benchmarks/kernels/compute/fft.cuh"
#include "benchmarks/kernels/compute/lava_md.cuh"
#include "benchmarks/kernels/compute/md5.cuh"
#include "benchmarks/kernels/compute/mrif.cuh"
#include "benchmarks/kernels/compute/mriq.cuh"
#include "benchmarks/kernels/compute/myocyte.cuh"
#include "benchmarks/kernels/compute/particle_filter.cuh"
#include "benchmarks/kernels/compute/sgemm.cuh"
#include "benchmarks/kernels/compute/sincos.cuh"
#include "benchmarks/kernels/compute/tea.cuh"
#include "benchmarks/kernels/compute/tpacf.cuh"

namespace gpushare::kernels {

GPUSHARE_KERNEL(gpushare_cp);
GPUSHARE_KERNEL(gpushare_cutcp);
GPUSHARE_KERNEL(gpushare_ffma);
GPUSHARE_KERNEL(gpushare_fft);
GPUSHARE_KERNEL(gpushare_lava_md);
GPUSHARE_KERNEL(gpushare_md5);
GPUSHARE_KERNEL(gpushare_mrif);
GPUSHARE_KERNEL(gpushare_mriq);
GPUSHARE_KERNEL(gpushare_myocyte);
GPUSHARE_KERNEL(gpushare_particle_filter);
GPUSHARE_KERNEL(gpushare_sgemm);
GPUSHARE_KERNEL(gpushare_sincos);
GPUSHARE_KERNEL(gpushare_sincos_steps);
GPUSHARE_KERNEL(gpushare_tea);
GPUSHARE_KERNEL(gpushare_tpacf);

}  // namespace gpushare::kernels
