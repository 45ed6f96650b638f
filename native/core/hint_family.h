// HintFamily: all topology hints of one resource over the NUMA nodes of one machine. A node is its position
// in the ascending list of the machine's node ids, so that masks fit in a word whatever the ids are.
//
// Three forms. HintList: what a custom provider wrote down. HintBits: one bit for each of the 2^n masks, for
// machines small enough to enumerate. LinearHints: amounts by node, from which every mask can be judged, and
// the masks that are exceptions, for larger ones. Plain values; concurrent reads of one object are safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/id_set.h"
#include "core/small_words.h"

namespace numalign {

// Machines of up to this many nodes have their masks enumerated: 8 KiB a bitset. Measured: merging two
// resources that prefer nothing in common takes about 2 us at 8 nodes, 0.15 ms at 14 and 1.4 ms at 16; the
// search of hint_merger.cc takes about 0.1 ms at 64, but is exact only within its budget.
constexpr int kEnumeratedNodes = 16;

struct ListedHint {
  NodeMask mask;  // not empty
  bool preferred;

  friend bool operator==(const ListedHint&, const ListedHint&) = default;
};
using HintList = std::vector<ListedHint>;

// Bit m of `offered`: the mask m is a hint; of `preferred`: and a preferred one. Both have bit_words(n)
// words.
struct HintBits {
  HintBits() {}  // not defaulted: all of it would be filled with zeros first
  SmallWords offered;
  SmallWords preferred;

  static size_t bit_words(int nodes) { return nodes <= 6 ? 1 : size_t{1} << (nodes - 6); }
  static bool test(std::span<const uint64_t> bits, uint64_t mask) {
    return bits[mask / 64] >> (mask % 64) & 1;
  }
  static void set(std::span<uint64_t> bits, uint64_t mask) { bits[mask / 64] |= uint64_t{1} << (mask % 64); }
  // The fewest nodes of a mask in it; more than a machine has where there is none.
  static int narrowest(std::span<const uint64_t> bits);

  // Of what is offered, masks of so many nodes are preferred, and no others.
  void prefer_size(int size);

  friend bool operator==(const HintBits&, const HintBits&) = default;
};

// What the nodes of a mask must have between them.
struct Need {
  uint64_t request = 0;  // not 0
  SmallWords free;       // by node; 0 outside the domain

  uint64_t free_in(NodeMask mask) const;
  bool is_met_by(NodeMask mask) const { return free_in(mask) >= request; }

  friend bool operator==(const Need&, const Need&) = default;
};

// The linear part: a mask is offered if it lies in `domain`, contains `must`, and meets every need. It is
// preferred if it also has `narrowest` nodes or, where packages_needed > 0, spans that many packages.
// Beside it masks may be listed; a listed one is a hint whatever the linear part says of it.
struct LinearHints {
  std::vector<Need> needs;  // at least one
  NodeMask must;
  NodeMask domain;
  int narrowest = 0;
  int packages_needed = 0;
  std::vector<uint64_t> packages;  // by node, a bit a package; empty unless packages_needed > 0
  HintList listed;                 // ascending by the value of the mask, each once

  bool offers(NodeMask mask) const;
  bool prefers(NodeMask mask) const;
  bool is_empty() const { return listed.empty() && !offers_linearly(domain); }
  // The linear part alone.
  bool offers_linearly(NodeMask mask) const;
  bool prefers_linearly(NodeMask mask) const;  // REQUIRES: offers_linearly(mask)
  // REQUIRES: nodes <= kEnumeratedNodes.
  HintBits enumerate(int nodes) const;

  friend bool operator==(const LinearHints&, const LinearHints&) = default;

 private:
  const ListedHint* find_listed(NodeMask mask) const;
};

struct HintFamily {
  using Masks = std::variant<HintList, HintBits, LinearHints>;

  HintFamily() {}  // as of HintBits
  HintFamily(int nodes, bool any_preferred, bool any_other, Masks masks)
      : nodes(nodes), any_preferred(any_preferred), any_other(any_other), masks(std::move(masks)) {}

  int nodes = 0;               // of the machine, at most NodeMask::kBits
  bool any_preferred = false;  // a preferred hint without a mask: no node is worse than another
  bool any_other = false;      // a hint without a mask that is not preferred: nothing can satisfy the request
  Masks masks;
  bool approximate = false;  // telling all it offers or prefers was too much work: LinearHints only

  bool offers(NodeMask mask) const;
  bool prefers(NodeMask mask) const;

  // As 32-bit words, the form in which a family crosses into JavaScript, where only lists are read or
  // written:
  //   [form | any_preferred << 8 | any_other << 9 | approximate << 10, nodes, ...]
  //   form 0, list:   [count, then for each (low, high, preferred)]
  //   form 1, bits:   [offered, preferred], each 2^nodes bits, at least one word
  //   form 2, linear: [number of needs, number of listed masks, must, domain (low, high each), narrowest,
  //                    packages_needed, then for each need (request, free by node), packages by node where
  //                    packages_needed > 0 (low, high each), listed masks as in form 0]
  // Only the linear form can be approximate, and it has no hint without a mask.
  std::vector<uint32_t> to_words() const;
  // Behind other words.
  void append_words(std::vector<uint32_t>& words) const;
  // nullopt: the words are of no family.
  static std::optional<HintFamily> from_words(std::span<const uint32_t> words);
  // The same without moving a family, which is large. False: this is of no use any more.
  bool read(std::span<const uint32_t> words);

  friend bool operator==(const HintFamily&, const HintFamily&) = default;
};

// A family of these hints, with masks enumerated on machines of up to `enumerated` nodes; an empty list where
// nothing is offered.
HintFamily family_of(LinearHints linear, int nodes, int enumerated = kEnumeratedNodes);

// Calls visit(position) for each node of a mask, ascending.
template <class F>
void for_each_node(uint64_t mask, F&& visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

// The mask of the first n nodes.
constexpr uint64_t all_nodes(int n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

}  // namespace numalign
