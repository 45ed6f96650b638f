// HintListing: the hints of a family one by one, in the kubelet's order: by number of nodes, then
// by node ids (of two masks of one size, the one with the lowest node in which they differ comes
// first). Lists from custom providers keep their order. Pure; reads only the family.
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

// A family in linear form can have 2^64 hints, or none for a long time: a limit in steps of about
// 20 ns.
constexpr uint64_t kStepsToFirst = 200'000;

// The hints with masks that come after the mask `after` (empty: the first), at most `limit`. For a
// family in linear form, the listing may be shorter and not whole if `steps` run out. A list is
// listed whole, whatever `after` and `limit` are.
HintListing list_hints(const HintFamily& family, NodeMask after, size_t limit, uint64_t steps);

// The family in which hints with these masks are not preferred.
HintFamily without_preferred(HintFamily family, std::span<const NodeMask> masks);

}  // namespace numalign
