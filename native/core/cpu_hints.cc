#include "core/cpu_hints.h"

#include <algorithm>
#include <array>
#include <functional>

#include "core/core_sizes.h"
#include "core/fewest_nodes.h"

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

// ---- Whole cores of different sizes

// By position of the node.
using CoresByNode = std::vector<CoreSizes>;

CoresByNode cores_by_node(const Topology& topology, std::span<const uint64_t> free) {
  CoresByNode by_node(topology.spec().nodes.size());
  const Level& cores = topology.cores();
  for_each_node_with_cpus(topology, [&](int i, size_t at) {
    for (int core : topology.cores_of_node()[i]) {
      const int size = cores.size(core);
      if (cores.free_in(core, free) == size) by_node[at].add(size);
    }
  });
  return by_node;
}

// What a mask must have for its cores of nested sizes to add up: the amount in all and, for each
// size, the remainder of the amount by it in smaller cores.
std::vector<Need> needs_of(const CoresByNode& by_node, std::span<const int> nested, int amount) {
  std::vector<Need> needs;
  auto demand = [&](int request, std::span<const int> sizes) {
    if (request == 0) return;
    Need need{static_cast<uint64_t>(request), SmallWords(by_node.size())};
    for (size_t node = 0; node < by_node.size(); node++) {
      for (int size : sizes) need.free[node] += static_cast<uint64_t>(size * by_node[node].count(size));
    }
    needs.push_back(std::move(need));
  };
  demand(amount, nested);
  for (size_t i = 0; i < nested.size(); i++) demand(amount % nested[i], nested.first(i));
  return needs;
}

struct WholeCoreHints {
  LinearHints hints;
  bool is_exact;

  // The fewest nodes of a hint; 0 if there is none.
  int narrowest() const {
    int least = fewest_nodes(hints.needs, hints.must, hints.domain).count;
    for (const ListedHint& hint : hints.listed) {
      if (least == 0 || hint.mask.size() < least) least = hint.mask.size();
    }
    return least;
  }
};

// The masks whose whole cores add up to `amount`. Cores of nested sizes do if the smaller ones have
// the remainder of the amount by each size. With other sizes, masks are tried: above `enumerated`
// nodes, only single nodes beside those required, and all nodes.
WholeCoreHints whole_core_hints(const CoresByNode& by_node, int amount, NodeMask must, NodeMask domain,
                                int enumerated) {
  CoreSizes all;
  for (const CoreSizes& cores : by_node) all.add(cores);
  std::vector<int> nested;
  bool are_all_nested = true;
  for (int size = 1; size <= all.largest(); size++) {
    if (all.count(size) == 0) continue;
    if (nested.empty() || size % nested.back() == 0) {
      nested.push_back(size);
    } else {
      are_all_nested = false;
    }
  }
  const int nodes = static_cast<int>(by_node.size());
  WholeCoreHints found{{}, are_all_nested || nodes <= enumerated};
  LinearHints& hints = found.hints;
  hints.must = must;
  hints.domain = domain;
  hints.needs = needs_of(by_node, nested, amount);
  if (are_all_nested) return found;
  auto judge = [&](uint64_t mask) {
    if ((must.bits() & ~mask) != 0 || hints.offers_linearly(NodeMask(mask))) return;
    CoreSizes inside;
    for_each_node(mask, [&](int node) { inside.add(by_node[static_cast<size_t>(node)]); });
    if (inside.can_make(amount)) hints.listed.push_back({NodeMask(mask), false});
  };
  if (nodes <= enumerated) {
    for (uint64_t mask = 1; mask <= all_nodes(nodes); mask++) {
      if ((mask & ~domain.bits()) == 0) judge(mask);
    }
  } else {
    if (!must.empty()) judge(must.bits());
    uint64_t rest = domain.bits() & ~must.bits();
    for_each_node(rest, [&](int node) { judge(must.bits() | uint64_t{1} << node); });
    if (count_ones(rest) > 1) judge(domain.bits());
  }
  return found;
}

// Makes hints for single CPUs those for whole cores, if these add up anywhere. Returns false if some
// may be missing.
bool count_whole_cores(LinearHints& linear, const Topology& topology, const CpuHintsRequest& request,
                       int enumerated) {
  const int kept = request.keeps_reusable ? request.reusable.size() : 0;
  if (kept >= request.count) return true;
  CpuSet available =
      request.keeps_reusable ? request.available - request.reusable : request.available | request.reusable;
  const CoresByNode now = cores_by_node(topology, words_for(topology, available));
  const CoresByNode ever = cores_by_node(topology, topology.cpus().words());
  WholeCoreHints hints = whole_core_hints(now, request.count - kept, linear.must, linear.domain, enumerated);
  if (hints.hints.is_empty()) return true;
  // A kept part of a core may make possible what the empty machine is not.
  const int narrowest =
      whole_core_hints(ever, request.count, NodeMask(), linear.domain, enumerated).narrowest();
  if (narrowest > 0) linear.narrowest = narrowest;
  linear.needs = std::move(hints.hints.needs);
  linear.listed = std::move(hints.hints.listed);
  return hints.is_exact;
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
  bool is_exact = request.whole_cores ? count_whole_cores(linear, topology, request, enumerated) : true;
  if (request.align_by_socket) {
    linear.packages_needed = packages_needed(topology, linear.narrowest);
    if (linear.packages_needed > 0) linear.packages.resize(all.size());
  }
  for_each_node_with_cpus(topology, [&](int i, size_t at) {
    if (linear.packages.empty()) return;
    for (int package : topology.packages_of_node()[i]) linear.packages[at] |= uint64_t{1} << package;
  });
  for (ListedHint& hint : linear.listed) hint.preferred = linear.prefers_linearly(hint.mask);
  HintFamily family = family_of(std::move(linear), static_cast<int>(all.size()), enumerated);
  family.approximate = !is_exact && std::holds_alternative<LinearHints>(family.masks);
  return family;
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
