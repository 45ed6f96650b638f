// CpuUse: counts the threads that have a CPU to themselves, and chooses a CPU for the next one. A
// plain value: copyable, no shared state.
#pragma once

#include <map>

#include "core/id_set.h"

namespace numalign {

class CpuUse {
 public:
  // Counts a thread that runs on only one CPU; a thread with several CPUs has none to itself.
  // `runs_javascript`: the thread is busy as long as the program is, while helpers come and go.
  void add(const CpuSet& cpus, bool runs_javascript);

  // The CPU of `cpus` with the fewest threads that run JavaScript; of several, the one with the
  // fewest threads, then the lowest id. REQUIRES: !cpus.empty().
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
