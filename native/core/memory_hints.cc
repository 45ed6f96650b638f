#include "core/memory_hints.h"

#include <algorithm>

#include "core/fewest_nodes.h"

namespace numalign {
namespace {

// The amounts of the nodes of `domain`, zero elsewhere.
Need need_in(NodeMask domain, uint64_t request, const SmallWords& amounts) {
  Need need{request, SmallWords(amounts.size())};
  for_each_node(domain.bits(), [&](int node) { need.free[node] = amounts[node]; });
  return need;
}

NodeMask unused_nodes(const MemoryHintsRequest& request) {
  uint64_t unused = 0;
  for (int node = 0; node < request.nodes; node++) {
    if (request.group[node].empty()) unused |= uint64_t{1} << node;
  }
  return NodeMask(unused);
}

// What unused nodes must have. On most machines, no more is free than allocatable, so allocatable
// is skipped.
std::vector<Need> needs_in(NodeMask unused, const std::vector<MemoryType>& types) {
  std::vector<Need> needs;
  needs.reserve(2 * types.size());
  for (const MemoryType& type : types) {
    Need free = need_in(unused, type.request, type.free);
    Need allocatable = need_in(unused, type.request, type.allocatable);
    bool is_within = std::ranges::equal(free.free, allocatable.free, std::ranges::less_equal());
    needs.push_back(std::move(free));
    if (!is_within) needs.push_back(std::move(allocatable));
  }
  return needs;
}

// True if existing allocations do not block this mask.
bool is_open(const std::vector<NodeMask>& group, NodeMask mask) {
  bool is_single = mask.size() == 1;
  bool is_open = true;
  for_each_node(mask.bits(), [&](int node) {
    is_open = is_open && (is_single ? group[node].size() <= 1 : group[node].empty() || group[node] == mask);
  });
  return is_open;
}

bool offers(const MemoryHintsRequest& request, NodeMask mask) {
  if (!is_open(request.group, mask) || (request.must.bits() & ~mask.bits()) != 0) return false;
  for (size_t i = 0; i < request.types.size(); i++) {
    const MemoryType& type = request.types[i];
    uint64_t allocatable = 0;
    uint64_t free = 0;
    for_each_node(mask.bits(), [&](int node) {
      allocatable += type.allocatable[node];
      if (!request.closed.contains(node)) free += type.free[node];
    });
    for (const ReusableMemory& reusable : request.reusable) {
      if (reusable.mask == mask) free += reusable.bytes[i];
    }
    if (allocatable < type.request || free < type.request) return false;
  }
  return true;
}

// Masks that may be hints although some nodes are in use, or although reusable memory must count.
std::vector<uint64_t> exceptions(const MemoryHintsRequest& request) {
  std::vector<uint64_t> masks;
  for (int node = 0; node < request.nodes; node++) {
    if (request.group[node].empty()) continue;
    masks.push_back(uint64_t{1} << node);
    masks.push_back(request.group[node].bits());
  }
  for (const ReusableMemory& reusable : request.reusable) masks.push_back(reusable.mask.bits());
  std::ranges::sort(masks);
  masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
  return masks;
}

}  // namespace

HintFamily memory_hints(const MemoryHintsRequest& request, int enumerated) {
  assert(request.nodes >= 1 && request.nodes <= NodeMask::kBits && !request.types.empty());
  NodeMask all(all_nodes(request.nodes));
  std::vector<Need> ever;
  ever.reserve(request.types.size());
  for (const MemoryType& type : request.types) ever.push_back(need_in(all, type.request, type.allocatable));
  FewestNodes least = fewest_nodes(ever, NodeMask(), all);

  LinearHints linear;
  NodeMask unused = unused_nodes(request);
  // If a required node is in use, no mask of unused nodes will do.
  if ((request.must.bits() & ~unused.bits()) == 0) {
    linear.domain = unused;
    linear.must = request.must;
  }
  linear.needs = needs_in(linear.domain, request.types);
  linear.narrowest = least.count;
  for (uint64_t mask : exceptions(request)) {
    if (!offers(request, NodeMask(mask)) || linear.offers_linearly(NodeMask(mask))) continue;
    linear.listed.push_back({NodeMask(mask), NodeMask(mask).size() == least.count});
  }
  HintFamily family = family_of(std::move(linear), request.nodes, enumerated);
  family.approximate = !least.exact && std::holds_alternative<LinearHints>(family.masks);
  return family;
}

}  // namespace numalign
