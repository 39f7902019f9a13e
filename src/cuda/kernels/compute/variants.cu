// The variants of every body of this folder.

#include <gpushare/device/variants.cuh>

#include "src/cuda/kernels/compute/cp.cuh"
#include "src/cuda/kernels/compute/cutcp.cuh"
#include "src/cuda/kernels/compute/ffma.cuh"
#include "src/cuda/kernels/compute/fft.cuh"
#include "src/cuda/kernels/compute/lava_md.cuh"
#include "src/cuda/kernels/compute/md5.cuh"
#include "src/cuda/kernels/compute/mrif.cuh"
#include "src/cuda/kernels/compute/mriq.cuh"
#include "src/cuda/kernels/compute/myocyte.cuh"
#include "src/cuda/kernels/compute/particle_filter.cuh"
#include "src/cuda/kernels/compute/sgemm.cuh"
#include "src/cuda/kernels/compute/sincos.cuh"
#include "src/cuda/kernels/compute/tea.cuh"
#include "src/cuda/kernels/compute/tpacf.cuh"

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
