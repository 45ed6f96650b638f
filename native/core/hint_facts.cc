#include "core/hint_facts.h"

namespace numalign {

HintBits to_bits(const HintFamily& family) {
  if (auto* linear = std::get_if<LinearHints>(&family.masks)) return linear->enumerate(family.nodes);
  HintBits bits;
  bits.offered = SmallWords(HintBits::bit_words(family.nodes));
  bits.preferred = SmallWords(bits.offered.size());
  for (const ListedHint& hint : std::get<HintList>(family.masks)) {
    HintBits::set(bits.offered, hint.mask.bits());
    if (hint.preferred) HintBits::set(bits.preferred, hint.mask.bits());
  }
  return bits;
}

}  // namespace numalign
