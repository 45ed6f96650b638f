// The fewest NUMA nodes that meet several needs at once. Pure function; safe to call from any
// thread.
#pragma once

#include <span>

#include "core/hint_family.h"

namespace numalign {

struct FewestNodes {
  int count = 0;      // 0: all nodes together do not meet the needs
  bool exact = true;  // false: the budget ran out, and the true number may be greater than `count`

  friend bool operator==(const FewestNodes&, const FewestNodes&) = default;
};

// Counts sets of nodes of `domain` that contain `must`. Exact with one need, or on up to
// kEnumeratedNodes nodes. Several needs are a covering problem: an exact search takes at most
// `budget` steps of about 50 ns; after them, the result is a lower bound. REQUIRES: at least one
// need; `must` within `domain`.
FewestNodes fewest_nodes(std::span<const Need> needs, NodeMask must, NodeMask domain, int budget = 100'000);

}  // namespace numalign
