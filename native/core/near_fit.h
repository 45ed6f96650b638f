// Near fit: best fit that takes CPUs near some others first. Pure function; safe to call from any
// thread.
#pragma once

#include "core/best_fit.h"

namespace numalign {

struct NearOptions {
  // CPUs to take first; they need not be available.
  CpuSet near{};
  // The number of NUMA nodes that near CPUs were chosen for. With keeps_nodes a distribution goes over
  // as many, if so many have near CPUs.
  int nodes = 0;
  bool keeps_nodes = false;
  // With whole cores: as many near ones as there are, or fail. Else fewer of them, if cores of
  // different sizes then add up.
  bool only_most = false;
  // With whole cores: what is taken near leaves cores that add up to the rest.
  bool leaves_rest = false;
  // Then, unless whole cores are asked for: as many CPUs of each NUMA node, but in the fewest L3 groups of
  // it, where that takes no more L3 groups in all and breaks no more cores.
  bool fewest_l3 = false;
};

// Takes `count` CPUs out of `available`: near ones by best fit, and the rest anywhere by best fit.
// options.elsewhere is ignored. kInsufficientCpus as for best_fit(). REQUIRES: as best_fit().
Result<CpuSet> near_fit(const Topology& topology, const CpuSet& available, int count, const NearOptions& near,
                        const BestFitOptions& options);

}  // namespace numalign
