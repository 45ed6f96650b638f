// HintListing: the hints of a family one by one, in the kubelet's order: by number of nodes, then by node
// ids (of two masks of one size the one that has the lowest node in which they differ). Those that were
// listed by hand keep the order of their list. Pure; reads nothing but the family.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/hint_family.h"

namespace numalign {

struct HintListing {
  HintList hints;
  bool is_whole = true;  // no hint comes after these
};

// A family in linear form can have 2^64 hints, or none for long: this many steps of about 20 ns.
constexpr uint64_t kStepsToFirst = 200'000;

// The hints with masks that come after the mask `after` (empty: after none), at most `limit`. With a family
// in linear form there are fewer, and the listing is not whole, where `steps` run out. A list is listed
// whole, whatever `after` and `limit` are.
HintListing list_hints(const HintFamily& family, NodeMask after, size_t limit, uint64_t steps);

// The family in which these masks, where they are hints, are not preferred.
HintFamily without_preferred(HintFamily family, std::span<const NodeMask> masks);

}  // namespace numalign
