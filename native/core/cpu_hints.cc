#include "core/cpu_hints.h"

#include <algorithm>
#include <array>
#include <functional>

namespace numalign {
namespace {

// The fewest nodes that hold `request` together; all nodes with CPUs if none do. REQUIRES: at most
// 64.
int narrowest_ever(const Level& nodes, int request) {
  std::array<int, NodeMask::kBits> all;
  std::span<int> sizes(all.data(), static_cast<size_t>(nodes.count()));
  for (int i = 0; i < nodes.count(); i++) sizes[i] = nodes.size(i);
  std::ranges::sort(sizes, std::greater());
  int count = 0;
  for (int left = request; left > 0 && count < nodes.count(); count++) left -= sizes[count];
  return count;
}

int packages_needed(const Topology& topology, int narrowest) {
  int nodes_per_package = topology.nodes().count() / topology.packages().count();
  return nodes_per_package == 0 ? 0 : (narrowest + nodes_per_package - 1) / nodes_per_package;
}

// The words of `set`, as many as the machine's CPUs need. Drops CPUs beyond.
SmallWords words_for(const Topology& topology, const CpuSet& set) {
  SmallWords words(topology.words());
  std::ranges::copy(set.words().first(std::min(words.size(), set.words().size())), words.begin());
  return words;
}

}  // namespace

HintFamily cpu_hints(const Topology& topology, const CpuHintsRequest& request, int enumerated) {
  assert(request.count >= 1);
  const std::vector<NodeInfo>& all = topology.spec().nodes;
  assert(all.size() <= NodeMask::kBits);
  LinearHints linear;
  Need need{static_cast<uint64_t>(request.count), SmallWords(all.size())};
  linear.narrowest = narrowest_ever(topology.nodes(), request.count);
  if (request.align_by_socket) {
    linear.packages_needed = packages_needed(topology, linear.narrowest);
    if (linear.packages_needed > 0) linear.packages.resize(all.size());
  }
  SmallWords usable = words_for(topology, request.available | request.reusable);
  SmallWords reusable = words_for(topology, request.reusable);
  uint64_t domain = 0;
  uint64_t must = 0;
  size_t at = 0;
  for (int i = 0; i < topology.nodes().count(); i++) {
    while (all[at].node != topology.nodes().id(i)) at++;
    domain |= uint64_t{1} << at;
    need.free[at] = static_cast<uint64_t>(topology.nodes().free_in(i, usable));
    if (topology.nodes().free_in(i, reusable) > 0) must |= uint64_t{1} << at;
    if (linear.packages.empty()) continue;
    for (int package : topology.packages_of_node()[i]) linear.packages[at] |= uint64_t{1} << package;
  }
  linear.domain = NodeMask(domain);
  linear.must = NodeMask(must);
  linear.needs.push_back(std::move(need));
  return family_of(std::move(linear), static_cast<int>(all.size()), enumerated);
}

CpuSet whole_cores(const Topology& topology, const CpuSet& cpus) {
  SmallWords words = words_for(topology, cpus);
  SmallWords whole(words.size());
  const Level& cores = topology.cores();
  for (int core = 0; core < cores.count(); core++) {
    if (cores.free_in(core, words) != cores.size(core)) continue;
    for (const Level::WordMask& m : cores.masks(core)) whole[m.word] |= m.mask;
  }
  return CpuSet::from_words(whole);
}

}  // namespace numalign
