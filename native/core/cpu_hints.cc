#include "core/cpu_hints.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "core/whole_core_masks.h"

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

// Calls visit(node, position) for each NUMA node with CPUs; the position is among all nodes.
template <class F>
void for_each_node_with_cpus(const Topology& topology, F&& visit) {
  size_t at = 0;
  for (int i = 0; i < topology.nodes().count(); i++) {
    while (topology.spec().nodes[at].node != topology.nodes().id(i)) at++;
    visit(i, at);
  }
}

// As few packages as the narrowest hints need.
void prefer_fewest_packages(LinearHints& linear, const Topology& topology) {
  linear.packages_needed = packages_needed(topology, linear.narrowest);
  if (linear.packages_needed == 0) return;
  linear.packages.resize(topology.spec().nodes.size());
  for_each_node_with_cpus(topology, [&](int i, size_t at) {
    for (int package : topology.packages_of_node()[i]) linear.packages[at] |= uint64_t{1} << package;
  });
}

// ---- Whole cores of different sizes

// By position of the node.
std::vector<CoreSizes> cores_by_node(const Topology& topology, std::span<const uint64_t> free) {
  std::vector<CoreSizes> by_node(topology.spec().nodes.size());
  const Level& cores = topology.cores();
  for_each_node_with_cpus(topology, [&](int i, size_t at) {
    for (int core : topology.cores_of_node()[i]) {
      const int size = cores.size(core);
      if (cores.free_in(core, free) == size) by_node[at].add(size);
    }
  });
  return by_node;
}

// The hints for whole cores, from those for single CPUs; nullopt if whole cores do not add up anywhere.
std::optional<HintFamily> whole_core_hints(LinearHints linear, const Topology& topology,
                                           const CpuHintsRequest& request, int enumerated) {
  const int kept = request.keeps_reusable ? request.reusable.size() : 0;
  if (kept >= request.count) return {};
  const CoreClaim whole{request.count, false};
  const CoreClaim missing{request.count - kept, false};
  auto claims_or = [&](const CoreClaim& one) {
    return request.claims.empty() ? std::span(&one, 1) : std::span<const CoreClaim>(request.claims);
  };
  const std::vector<CoreSizes> now = cores_by_node(
      topology, words_for(topology, request.keeps_reusable ? request.available - request.reusable
                                                           : request.available | request.reusable));
  WholeCoreMasks masks(now, claims_or(missing), linear.must, linear.domain);
  if (!masks.any()) return {};
  // A kept part of a core may make possible what the empty machine is not.
  const std::vector<CoreSizes> ever = cores_by_node(topology, topology.cpus().words());
  const int narrowest =
      WholeCoreMasks(ever, claims_or(whole), NodeMask(), linear.domain).narrowest(enumerated);
  if (narrowest > 0) linear.narrowest = narrowest;
  if (request.align_by_socket) prefer_fewest_packages(linear, topology);
  linear.needs = masks.needs();
  const int nodes = static_cast<int>(now.size());
  if (nodes > enumerated) {
    const bool is_exact = masks.are_all_nested() || masks.list_in(linear);
    HintFamily family(nodes, false, false, std::move(linear));
    family.approximate = !is_exact;
    return family;
  }
  HintBits bits = linear.enumerate(nodes);
  if (!masks.are_all_nested()) {
    masks.add_to(bits.offered);
    linear.prefer_linearly(bits);
  }
  return HintFamily(nodes, false, false, std::move(bits));
}

}  // namespace

HintFamily cpu_hints(const Topology& topology, const CpuHintsRequest& request, int enumerated) {
  assert(request.count >= 1);
  const std::vector<NodeInfo>& all = topology.spec().nodes;
  assert(all.size() <= NodeMask::kBits);
  LinearHints linear;
  Need need{static_cast<uint64_t>(request.count), SmallWords(all.size())};
  const SmallWords usable = words_for(topology, request.available | request.reusable);
  const SmallWords reusable = words_for(topology, request.reusable);
  uint64_t domain = 0;
  uint64_t must = 0;
  for_each_node_with_cpus(topology, [&](int i, size_t at) {
    domain |= uint64_t{1} << at;
    need.free[at] = static_cast<uint64_t>(topology.nodes().free_in(i, usable));
    if (topology.nodes().free_in(i, reusable) > 0) must |= uint64_t{1} << at;
  });
  linear.domain = NodeMask(domain);
  linear.must = NodeMask(must);
  linear.needs.push_back(std::move(need));
  linear.narrowest = narrowest_ever(topology.nodes(), request.count);
  if (request.whole_cores) {
    std::optional<HintFamily> family = whole_core_hints(linear, topology, request, enumerated);
    if (family) return *std::move(family);
  }
  if (request.align_by_socket) prefer_fewest_packages(linear, topology);
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
