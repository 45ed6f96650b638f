#include "core/fewest_nodes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "core/subset_search.h"

namespace numalign {
namespace {

// REQUIRES: the nodes of `domain` meet it.
int fewest_for(const Need& need, NodeMask must, NodeMask domain) {
  std::array<uint64_t, NodeMask::kBits> amounts;
  size_t size = 0;
  for_each_node(domain.bits() & ~must.bits(), [&](int node) { amounts[size++] = need.free[node]; });
  const std::span<uint64_t> rest(amounts.data(), size);
  std::ranges::sort(rest, std::greater());
  uint64_t sum = need.free_in(must);
  size_t count = 0;
  while (sum < need.request) sum += rest[count++];
  return must.size() + static_cast<int>(count);
}

// The `count` nodes with the largest parts of all requests.
NodeMask richest(std::span<const Need> needs, NodeMask must, NodeMask domain, int count) {
  std::vector<std::pair<double, int>> parts;
  for_each_node(domain.bits() & ~must.bits(), [&](int node) {
    double part = 0;
    for (const Need& need : needs) {
      part -= std::min(1.0, static_cast<double>(need.free[node]) / static_cast<double>(need.request));
    }
    parts.push_back({part, node});
  });
  std::ranges::sort(parts);
  uint64_t mask = must.bits();
  for (int i = 0; i < count - must.size(); i++) mask |= uint64_t{1} << parts[static_cast<size_t>(i)].second;
  return NodeMask(mask);
}

}  // namespace

FewestNodes fewest_nodes(std::span<const Need> needs, NodeMask must, NodeMask domain, int budget) {
  assert(!needs.empty());
  int least = 0;
  for (const Need& need : needs) {
    if (!need.is_met_by(domain)) return {};
    least = std::max(least, fewest_for(need, must, domain));
  }
  // For one need, the nodes with the most are the best choice.
  if (needs.size() == 1) return {least};
  NodeMask guess = richest(needs, must, domain, least);
  if (std::ranges::all_of(needs, [&](const Need& need) { return need.is_met_by(guess); })) return {least};

  std::vector<int> nodes;
  for_each_node(domain.bits(), [&](int node) {
    bool is_of_use = std::ranges::any_of(needs, [&](const Need& need) { return need.free[node] > 0; });
    if (is_of_use || must.contains(node)) nodes.push_back(node);
  });
  SubsetSearch::Party party;
  for (const Need& need : needs) {
    party.push_back(SubsetSearch::row_of(need, must, nodes, need.free_in(domain)));
  }
  int most = static_cast<int>(nodes.size());
  if (most <= kEnumeratedNodes) budget = std::numeric_limits<int>::max();
  BestMasks best({}, NodeMask::kBits);
  SubsetSearch search(std::move(nodes), {&party, 1}, budget, best);
  for (int size = least; size < most; size++) {
    search.run(size);
    if (best.of_size(size) != 0) return {size};
    if (budget < 0) return {size, false};
  }
  return {most};
}

}  // namespace numalign
