// CpuUse: how many threads have each CPU to themselves, and which CPU the next one gets where every thread is
// to have one of its own. A plain value: copyable, no shared state.
#pragma once

#include <map>

#include "core/id_set.h"

namespace numalign {

class CpuUse {
 public:
  // Counts a thread that runs on one CPU only; one that may run on several has none to itself.
  // `runs_javascript`: it is busy for as long as the program is, where helpers come and go.
  void add(const CpuSet& cpus, bool runs_javascript);

  // Of `cpus` the one with the fewest threads that run JavaScript, of these with the fewest threads, of these
  // with the lowest id. REQUIRES: !cpus.empty().
  int least_used(const CpuSet& cpus) const;

 private:
  struct Count {
    int javascript = 0;
    int all = 0;
    friend auto operator<=>(const Count&, const Count&) = default;
  };
  std::map<int, Count> counts_;
};

}  // namespace numalign
