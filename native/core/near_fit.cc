#include "core/near_fit.h"

#include <algorithm>

namespace numalign {
namespace {

class NearFit {
 public:
  NearFit(const Topology& topology, const CpuSet& available, int count, const NearOptions& near,
          const BestFitOptions& options)
      : topology_(topology),
        available_(available),
        count_(count),
        leaves_rest_(near.leaves_rest),
        near_(available & near.near),
        options_(options),
        least_nodes_(near.keeps_nodes ? near.nodes : 0) {}

  int most() const { return std::min(near_.size(), count_); }

  // This many of the near CPUs, and the rest anywhere.
  Result<CpuSet> take(int nearby) const {
    const int rest = count_ - nearby;
    Result<CpuSet> first = part(near_, available_, nearby, leaves_rest_ ? rest : 0, least_nodes_);
    if (!first.ok() || rest == 0) return first;
    const CpuSet left = available_ - first.value();
    Result<CpuSet> others = part(left, left, rest, 0, 0);
    if (!others.ok()) return others;
    return first.value() | others.value();
  }

 private:
  // `kept`: what the rest should add up to besides options.later.
  Result<CpuSet> part(const CpuSet& from, const CpuSet& elsewhere, int count, int kept,
                      int least_nodes) const {
    if (count == 0) return CpuSet();
    BestFitOptions options = options_;
    options.least_nodes = least_nodes;
    if (!options_.whole_cores) return best_fit(topology_, from, count, options);
    options.elsewhere = elsewhere;
    if (kept > 0) options.later.insert(options.later.begin(), {kept, false});
    return best_fit(topology_, from, count, options);
  }

  const Topology& topology_;
  const CpuSet& available_;
  int count_;
  bool leaves_rest_;
  CpuSet near_;
  const BestFitOptions& options_;
  int least_nodes_;
};

}  // namespace

Result<CpuSet> near_fit(const Topology& topology, const CpuSet& available, int count, const NearOptions& near,
                        const BestFitOptions& options) {
  const NearFit fit(topology, available, count, near, options);
  const int most = fit.most();
  Result<CpuSet> best = fit.take(most);
  if (best.ok() || !options.whole_cores || near.only_most) return best;
  // If cores add up nowhere, fewer near ones do not help.
  Result<CpuSet> anywhere = fit.take(0);
  for (int nearby = most - 1; anywhere.ok() && nearby > 0; nearby--) {
    Result<CpuSet> some = fit.take(nearby);
    if (some.ok()) return some;
  }
  return anywhere;
}

}  // namespace numalign
