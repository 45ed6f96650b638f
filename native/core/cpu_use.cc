#include "core/cpu_use.h"

#include <cassert>

namespace numalign {

void CpuUse::add(const CpuSet& cpus, bool runs_javascript) {
  if (cpus.size() != 1) return;
  Count& count = counts_[cpus.first()];
  count.javascript += runs_javascript ? 1 : 0;
  count.all++;
}

int CpuUse::least_used(const CpuSet& cpus) const {
  assert(!cpus.empty());
  int best = -1;
  Count least;
  cpus.for_each([&](int cpu) {
    auto found = counts_.find(cpu);
    const Count count = found == counts_.end() ? Count{} : found->second;
    if (best != -1 && !(count < least)) return;
    best = cpu;
    least = count;
  });
  return best;
}

}  // namespace numalign
