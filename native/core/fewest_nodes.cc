#include "core/fewest_nodes.h"

#include <algorithm>
#include <functional>

#include "core/subset_search.h"

namespace numalign {
namespace {

// REQUIRES: the nodes of `domain` meet it.
int fewest_for(const Need& need, NodeMask must, NodeMask domain) {
  std::vector<uint64_t> rest;
  for_each_node(domain.bits() & ~must.bits(), [&](int node) { rest.push_back(need.free[node]); });
  std::ranges::sort(rest, std::greater());
  uint64_t sum = need.free_in(must);
  size_t count = 0;
  while (sum < need.request) sum += rest[count++];
  return must.size() + static_cast<int>(count);
}

}  // namespace

FewestNodes fewest_nodes(std::span<const Need> needs, NodeMask must, NodeMask domain, int budget) {
  assert(!needs.empty());
  int least = 0;
  for (const Need& need : needs) {
    if (!need.is_met_by(domain)) return {};
    least = std::max(least, fewest_for(need, must, domain));
  }
  if (needs.size() == 1) return {least};

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
