// Facts about a family of hints that every merge uses.
#pragma once

#include <span>

#include "core/hint_family.h"

namespace numalign {

inline bool has_masks(const HintFamily& family) {
  if (auto* list = std::get_if<HintList>(&family.masks)) return !list->empty();
  return true;  // only lists can be empty
}

// True if there is no mask, and no preferred hint without one: nothing satisfies the request, which
// counts as a single hint that is not preferred.
inline bool is_impossible(const HintFamily& family) { return !family.any_preferred && !has_masks(family); }

// True if the family can leave in every node, by a hint without a mask.
inline bool may_abstain(const HintFamily& family) {
  return family.any_preferred || family.any_other || !has_masks(family);
}

// Converts a family in another form. REQUIRES: nodes <= kEnumeratedNodes.
HintBits to_bits(const HintFamily& family);

template <class F>
void for_each_mask(std::span<const uint64_t> bits, F&& visit) {
  for (size_t i = 0; i < bits.size(); i++) {
    for_each_node(bits[i], [&](int bit) { visit(i * 64 + static_cast<size_t>(bit)); });
  }
}

}  // namespace numalign
