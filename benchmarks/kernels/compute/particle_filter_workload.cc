// The workload of particle_filter: the frames of a block task follow its wanted length.

#include <algorithm>
#include <array>
#include <memory>

#include "benchmarks/kernels/compute/particle_filter.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;        // 1 MB of results
constexpr uint32_t kFilmFramesMax = 64;  // 1 MB
// Instructions of a thread in a frame, as compiled for sm_90: 16 pixels loaded, four particles
// moved and weighed at 16 probes, the scan, four searches.
constexpr double kInstructionsPerFrame = 640;

class ParticleFilterWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double instructions =
        PerThread(options.block_task_us, kIntegerPerClock, kernel.workers_per_sm);
    frames_ = WholeSteps(instructions / kInstructionsPerFrame, 1);
    film_frames_ = std::min(frames_, kFilmFramesMax);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    Status status = film_.Allocate(film_frames_ * kFilterPixels * sizeof(float));
    if (status.ok()) status = film_.FillUniform(seed_, 0.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(distinct_block_tasks_, 4);
    if (!status.ok()) return status;
    work_per_block_task_ = kInstructionsPerFrame * frames_ * kThreadsPerBlock;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 120.0 * kFilterParticles * frames_;
    SetParams(ParticleFilterParams{film_.as<const float>(), output_.as<uint32_t>(),
                                   distinct_block_tasks_, frames_, film_frames_, seed_});
    return {};
  }

 private:
  using Places = std::array<FilterPlace, kFilterParticles>;

  std::array<uint32_t, kFilterPixels> Frame(uint32_t frame) const {
    std::array<uint32_t, kFilterPixels> pixels = {};
    const uint32_t first = frame % film_frames_ * kFilterPixels;
    for (uint32_t i = 0; i < kFilterPixels; ++i) {
      pixels[i] = FilterPixel(Uniform(seed_, first + i, 0.0F, 1.0F), i, frame);
    }
    return pixels;
  }

  // Moves and redraws all particles; returns the sum of their weights.
  uint32_t Follow(uint32_t slot, uint32_t frame, Places* places) const {
    const auto pixels = Frame(frame);
    std::array<uint32_t, kFilterParticles> cumulated = {};
    uint32_t all = 0;
    for (uint32_t i = 0; i < kFilterParticles; ++i) {
      FilterPlace& place = (*places)[i];
      place = FilterMove(place, seed_, slot * kFilterParticles + i, frame);
      uint32_t sum = 0;
      for (uint32_t probe = 0; probe < kFilterProbes; ++probe) {
        sum += pixels[FilterProbe(place, probe)];
      }
      all += FilterWeight(sum);
      cumulated[i] = all;
    }
    const Places moved = *places;
    for (uint32_t i = 0; i < kFilterParticles; ++i) {
      const uint32_t point = FilterDraw(seed_, slot, frame, i, all);
      const auto found = std::upper_bound(cumulated.begin(), cumulated.end(), point);
      (*places)[i] = moved[static_cast<size_t>(found - cumulated.begin())];
    }
    return all;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto slot = static_cast<uint32_t>(index);
    Places places = {};
    for (uint32_t i = 0; i < kFilterParticles; ++i) {
      places[i] = FilterStart(seed_, slot * kFilterParticles + i);
    }
    uint32_t all = 0;
    for (uint32_t frame = 0; frame < frames_; ++frame) all = Follow(slot, frame, &places);
    uint32_t hashes = 0;
    for (uint32_t i = 0; i < kFilterParticles; ++i) {
      expected[0] += places[i].x;
      expected[1] += places[i].y;
      hashes += FilterHash(places[i], i);
    }
    expected[2] = all;
    expected[3] = hashes;
  }

  DeviceBuffer film_;
  uint32_t frames_ = 0;
  uint32_t film_frames_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeParticleFilter = MakeAs<ParticleFilterWorkload>;

}  // namespace gpushare::kernels
