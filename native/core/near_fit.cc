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

  // As many CPUs of each node as `taken` has, in the fewest L3 groups, unless that costs something.
  CpuSet in_fewest_l3(const CpuSet& taken) const {
    // Near CPUs stay near ones.
    const CpuSet found = regrouped(near_, taken & near_) | regrouped(available_ - near_, taken - near_);
    const bool costs = found != taken && (l3_groups_of(found) > l3_groups_of(taken) ||
                                          cores_broken_by(found) > cores_broken_by(taken));
    return costs ? taken : found;
  }

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
  CpuSet regrouped(const CpuSet& from, const CpuSet& taken) const {
    BestFitOptions options{.spread = options_.spread, .align_by_l3 = true, .any_rest_in_l3 = true};
    options.fewest_l3 = true;
    CpuSet all;
    for (int node = 0; node < topology_.nodes().count(); node++) {
      const CpuSet cpus = cpus_of(topology_.nodes(), node);
      const CpuSet here = taken & cpus;
      const bool has_choice = !here.empty() && topology_.l3_groups_of_node()[node].size() > 1;
      all |= has_choice ? best_fit(topology_, from & cpus, here.size(), options).value() : here;
    }
    return all;
  }

  CpuSet cpus_of(const Level& level, int element) const {
    SmallWords words(topology_.words());
    for (const Level::WordMask& m : level.masks(element)) words[m.word] |= m.mask;
    return CpuSet::from_words(std::move(words));
  }

  SmallWords words_of(const CpuSet& cpus) const {
    SmallWords words(topology_.words());
    std::copy_n(cpus.words().begin(), std::min(cpus.words().size(), words.size()), words.begin());
    return words;
  }

  int l3_groups_of(const CpuSet& cpus) const {
    const SmallWords words = words_of(cpus);
    const Level& groups = topology_.l3_groups();
    int count = 0;
    for (int group = 0; group < groups.count(); group++) count += groups.free_in(group, words) > 0 ? 1 : 0;
    return count;
  }

  // The free cores that it takes in part.
  int cores_broken_by(const CpuSet& cpus) const {
    const SmallWords words = words_of(cpus);
    const SmallWords available = words_of(available_);
    const Level& cores = topology_.cores();
    int count = 0;
    for (int core = 0; core < cores.count(); core++) {
      const int taken = cores.free_in(core, words);
      const bool is_broken = taken > 0 && taken < cores.size(core);
      count += is_broken && cores.free_in(core, available) == cores.size(core) ? 1 : 0;
    }
    return count;
  }

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
  if (best.ok() && near.fewest_l3 && !options.whole_cores) return fit.in_fewest_l3(best.value());
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
