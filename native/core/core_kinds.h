// Ranks kinds of cores by performance, from what the operating system says of them. Pure functions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/id_set.h"
#include "core/topology.h"

namespace numalign {

// What is known of the cores of some CPUs; 0: unknown. More is faster.
struct CoreFacts {
  CpuSet cpus{};
  // Relative to the fastest core, as Linux's cpu_capacity or the efficiency in an hwloc description.
  int capacity = 0;
  int type = 0;
  int max_mhz = 0;

  // Takes an attribute that hwloc gives to a kind: CoreType, FrequencyMaxMHz or LinuxCapacity. Others
  // have no effect: base frequencies differ between cores that are the same.
  void note(std::string_view name, std::string_view value);
};

// The CPUs with their kinds: ranks from 0, the slowest. Cores whose capacities and frequencies differ
// by less than a tenth are of one kind: favored cores of a package are a little faster than others.
// All CPUs are of one kind unless each is in exactly one of the facts.
std::vector<CpuInfo> with_kinds(std::vector<CpuInfo> cpus, std::span<const CoreFacts> facts);

}  // namespace numalign
