// HintFamily: all topology hints of one resource over the NUMA nodes of one machine. A node is its
// position in the ascending list of the machine's node ids, so that masks fit in a word.
//
// There are three forms. HintList: hints that a custom provider listed. HintBits: one bit for each
// of the 2^n masks, for machines small enough to enumerate. LinearHints: amounts by node that judge
// every mask, and exceptional masks, for larger machines. Plain values; concurrent reads of one
// object are safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/id_set.h"
#include "core/small_words.h"

namespace numalign {

// Machines with up to this many nodes have their masks enumerated: 8 KiB per bitset. Measured:
// merging two resources without a common preference takes about 2 us at 8 nodes, 0.15 ms at 14 and
// 1.4 ms at 16. The search of hint_merger.cc takes about 0.1 ms at 64, but is exact only within its
// budget.
constexpr int kEnumeratedNodes = 16;

struct ListedHint {
  NodeMask mask;  // not empty
  bool preferred;

  friend bool operator==(const ListedHint&, const ListedHint&) = default;
};
using HintList = std::vector<ListedHint>;

// Bit m of `offered`: the mask m is a hint; of `preferred`: it is a preferred hint. Both have
// bit_words(n) words.
struct HintBits {
  HintBits() {}  // not defaulted, which would fill all of it with zeros first
  SmallWords offered;
  SmallWords preferred;

  static size_t bit_words(int nodes) { return nodes <= 6 ? 1 : size_t{1} << (nodes - 6); }
  static bool test(std::span<const uint64_t> bits, uint64_t mask) {
    return bits[mask / 64] >> (mask % 64) & 1;
  }
  static void set(std::span<uint64_t> bits, uint64_t mask) { bits[mask / 64] |= uint64_t{1} << (mask % 64); }
  // The number of masks of the lowest six nodes, which are the bits of one word.
  static constexpr size_t low_masks(size_t nodes) { return size_t{1} << std::min<size_t>(nodes, 6); }
  // Bit b of [k]: b has k bits.
  static constexpr std::array<uint64_t, 7> kLowOfSize = [] {
    std::array<uint64_t, 7> sizes{};
    for (unsigned b = 0; b < 64; b++) sizes[static_cast<size_t>(count_ones(b))] |= uint64_t{1} << b;
    return sizes;
  }();
  // The fewest nodes of a mask in `bits`; more than a machine has if there is none.
  static int narrowest(std::span<const uint64_t> bits);

  // Makes exactly the offered masks of this size preferred.
  void prefer_size(int size);

  friend bool operator==(const HintBits&, const HintBits&) = default;
};

// What the nodes of a mask must have together.
struct Need {
  uint64_t request = 0;  // not 0
  SmallWords free;       // by node; 0 outside the domain

  uint64_t free_in(NodeMask mask) const;
  bool is_met_by(NodeMask mask) const { return free_in(mask) >= request; }

  friend bool operator==(const Need&, const Need&) = default;
};

// The linear part offers a mask that lies in `domain`, contains `must`, and meets every need. It
// prefers one that also has `narrowest` nodes or, if packages_needed > 0, spans that many packages.
// In addition, masks may be listed; a listed mask is a hint whatever the linear part says.
struct LinearHints {
  std::vector<Need> needs;  // at least one
  NodeMask must;
  NodeMask domain;
  int narrowest = 0;
  int packages_needed = 0;
  std::vector<uint64_t> packages;  // by node, one bit per package; empty unless packages_needed > 0
  HintList listed;                 // ascending by mask, without duplicates

  bool offers(NodeMask mask) const;
  bool prefers(NodeMask mask) const;
  bool is_empty() const { return listed.empty() && !offers_linearly(domain); }
  // The linear part alone.
  bool offers_linearly(NodeMask mask) const;
  bool prefers_linearly(NodeMask mask) const;  // REQUIRES: offers_linearly(mask)
  // REQUIRES: nodes <= kEnumeratedNodes.
  HintBits enumerate(int nodes) const;
  // Makes those of the offered masks preferred that the linear part would prefer.
  void prefer_linearly(HintBits& bits) const;

  friend bool operator==(const LinearHints&, const LinearHints&) = default;

 private:
  const ListedHint* find_listed(NodeMask mask) const;
};

struct HintFamily {
  using Masks = std::variant<HintList, HintBits, LinearHints>;

  HintFamily() {}  // as for HintBits
  HintFamily(int nodes, bool any_preferred, bool any_other, Masks masks)
      : nodes(nodes), any_preferred(any_preferred), any_other(any_other), masks(std::move(masks)) {}

  int nodes = 0;               // of the machine, at most NodeMask::kBits
  bool any_preferred = false;  // a preferred hint without a mask: no node is worse than another
  bool any_other = false;      // a hint without a mask that is not preferred: nothing satisfies the request
  Masks masks;
  bool approximate = false;  // some offered or preferred masks may be missing: LinearHints only

  bool offers(NodeMask mask) const;
  bool prefers(NodeMask mask) const;

  // The family as 32-bit words, its form in JavaScript, which reads and writes only lists:
  //   [form | any_preferred << 8 | any_other << 9 | approximate << 10, nodes, ...]
  //   form 0, list:   [count, then for each (low, high, preferred)]
  //   form 1, bits:   [offered, preferred], each 2^nodes bits, at least one word
  //   form 2, linear: [number of needs, number of listed masks, must, domain (low, high each),
  //                    narrowest, packages_needed, then for each need (request, free by node),
  //                    packages by node if packages_needed > 0 (low, high each),
  //                    listed masks as in form 0]
  // Only the linear form can be approximate, and it has no hint without a mask.
  std::vector<uint32_t> to_words() const;
  // Appends the words to others.
  void append_words(std::vector<uint32_t>& words) const;
  // nullopt: the words are not a family.
  static std::optional<HintFamily> from_words(std::span<const uint32_t> words);
  // Like from_words(), without moving a family, which is large. False: this object is unusable from
  // now on.
  bool read(std::span<const uint32_t> words);

  friend bool operator==(const HintFamily&, const HintFamily&) = default;
};

// A family of these hints. Enumerates masks on machines with up to `enumerated` nodes. An empty
// list if nothing is offered.
HintFamily family_of(LinearHints linear, int nodes, int enumerated = kEnumeratedNodes);

// Calls visit(position) for each node of a mask, ascending.
template <class F>
void for_each_node(uint64_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

// The mask of the first n nodes.
constexpr uint64_t all_nodes(int n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

}  // namespace numalign
