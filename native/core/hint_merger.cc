#include "core/hint_merger.h"

#include <algorithm>
#include <forward_list>
#include <functional>

#include "core/fewest_nodes.h"
#include "core/hint_facts.h"
#include "core/subset_search.h"
#include "core/superset_sums.h"

namespace numalign {
namespace {

// The order of sizes if no mask is preferred by all: `wanted`, then the nearest below, then the
// nearest above. Returns the first for which visit() is true, or 0.
template <class F>
int first_size(int wanted, int most, F&& visit) {
  for (int size = std::min(wanted, most); size >= 1; size--) {
    if (visit(size)) return size;
  }
  for (int size = wanted + 1; size <= most; size++) {
    if (visit(size)) return size;
  }
  return 0;
}

// ---- Facts about one family

// The fewest nodes of an offered mask, like FewestNodes.
FewestNodes narrowest(const HintFamily& family, int budget) {
  int least = NodeMask::kBits + 1;
  if (auto* list = std::get_if<HintList>(&family.masks)) {
    for (const ListedHint& hint : *list) least = std::min(least, hint.mask.size());
    return {list->empty() ? 0 : least};
  }
  if (auto* bits = std::get_if<HintBits>(&family.masks)) return {HintBits::narrowest(bits->offered)};
  const LinearHints& linear = std::get<LinearHints>(family.masks);
  for (const ListedHint& hint : linear.listed) least = std::min(least, hint.mask.size());
  FewestNodes of_linear_part = fewest_nodes(linear.needs, linear.must, linear.domain, budget);
  bool is_narrower = of_linear_part.count != 0 && of_linear_part.count < least;
  return is_narrower ? of_linear_part : FewestNodes{least};
}

FewestNodes greater(FewestNodes a, FewestNodes b) { return {std::max(a.count, b.count), a.exact && b.exact}; }

// ---- Few nodes: enumerate

template <class Count>
std::vector<Count> superset_sums_of(std::span<const uint64_t> bits, int nodes) {
  std::vector<Count> counts(size_t{1} << nodes);
  for_each_mask(bits, [&](size_t mask) { counts[mask] = 1; });
  superset_sums(counts, false);
  return counts;
}

// The masks that an AND of one member of each set can be: a convolution, which is a product of
// superset sums. A product of two sets of at most 2^nodes - 1 masks fits in twice as many bits as
// there are nodes.
template <class Count>
void and_with(SmallWords& reached, std::span<const uint64_t> offered, int nodes) {
  std::vector<Count> a = superset_sums_of<Count>(reached, nodes);
  std::vector<Count> b = superset_sums_of<Count>(offered, nodes);
  // Wide, because a product of two narrow unsigned numbers is computed as signed.
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<Count>(uint64_t{a[i]} * b[i]);
  superset_sums(a, true);
  std::ranges::fill(reached, 0);
  for (size_t mask = 1; mask < a.size(); mask++) {  // an AND of no nodes is not a hint
    if (a[mask] != 0) HintBits::set(reached, mask);
  }
}

class Enumeration {
 public:
  Enumeration(std::span<const HintFamily> families, const MergeOptions& options) : options_(options) {
    families_.reserve(families.size());
    for (const HintFamily& family : families) {
      auto* bits = std::get_if<HintBits>(&family.masks);
      families_.push_back({&family, bits ? bits : &made_.emplace_front(to_bits(family))});
    }
  }

  // The best mask that every family prefers or does not care about; 0 if there is none.
  uint64_t preferred() const {
    size_t words = HintBits::bit_words(options_.nodes);
    SmallWords common(words, ~uint64_t{0});
    SmallWords any(words);
    for (const auto& [family, bits] : families_) {
      for (size_t i = 0; i < words; i++) {
        if (!family->any_preferred) common[i] &= bits->preferred[i];
        any[i] |= bits->preferred[i];
      }
    }
    BestMasks best(options_.distances, options_.nodes);
    for (size_t i = 0; i < words; i++) common[i] &= any[i];
    for_each_mask(common, [&](size_t mask) { best.consider(mask); });
    return best.narrowest();
  }

  // The best mask that an AND of one hint of each family can be.
  uint64_t reachable(int wanted) const {
    SmallWords reached;
    for (const auto& [family, bits] : families_) {
      SmallWords offered = bits->offered;
      if (may_abstain(*family)) HintBits::set(offered, all_nodes(options_.nodes));
      if (reached.empty()) {
        reached = std::move(offered);
      } else if (options_.nodes <= 8) {
        and_with<uint16_t>(reached, offered, options_.nodes);
      } else {
        and_with<uint32_t>(reached, offered, options_.nodes);
      }
    }
    BestMasks best(options_.distances, options_.nodes);
    for_each_mask(reached, [&](size_t mask) { best.consider(mask); });
    int size = first_size(wanted, options_.nodes, [&](int s) { return best.of_size(s) != 0; });
    return best.of_size(size);
  }

 private:
  struct Entry {
    const HintFamily* family;
    const HintBits* bits;
  };
  const MergeOptions& options_;
  std::vector<Entry> families_;
  std::forward_list<HintBits> made_;  // a list, so that none of them moves
};

// ---- Many nodes: search

std::vector<int> nodes_of(uint64_t mask) {
  std::vector<int> nodes;
  for_each_node(mask, [&](int node) { nodes.push_back(node); });
  return nodes;
}

// The most combinations of masks to follow, and to look at. The rest is cut off, and the result is
// then not exact.
constexpr size_t kMostCombinations = 4096;
constexpr size_t kMostProducts = 1'000'000;
// The most linear families that may leave nodes out of a combination. The rest keep all nodes, and
// the result is then not exact.
constexpr size_t kMostParties = 64;

// A list with each mask once, ascending.
HintList sorted(HintList list) {
  // Preferred ones first, so that these stay.
  std::ranges::sort(list, [](const ListedHint& a, const ListedHint& b) {
    return a.mask != b.mask ? a.mask.bits() < b.mask.bits() : a.preferred > b.preferred;
  });
  list.erase(std::unique(list.begin(), list.end(),
                         [](const ListedHint& a, const ListedHint& b) { return a.mask == b.mask; }),
             list.end());
  return list;
}

class Search {
 public:
  Search(std::span<const HintFamily> families, const MergeOptions& options)
      : options_(options), all_(all_nodes(options.nodes)) {
    for (const HintFamily& family : families) {
      if (auto* linear = std::get_if<LinearHints>(&family.masks)) {
        linear_.push_back(linear);
        domain_ &= linear->domain.bits();
      } else if (has_masks(family)) {
        lists_.push_back({&family, sorted(std::get<HintList>(family.masks))});
      }
    }
    domain_ &= all_;
  }

  bool exact() const { return exact_; }

  uint64_t preferred() {
    // A mask that all prefer is in every list that must be met. Without such a list, the linear
    // families decide alone.
    const SortedList* shortest = nullptr;
    for (const SortedList& list : lists_) {
      if (list.family->any_preferred) continue;
      if (!shortest || list.hints.size() < shortest->hints.size()) shortest = &list;
    }
    if (shortest) return preferred_among(shortest->hints);
    BestMasks best(options_.distances, options_.nodes);
    if (linear_.empty()) {
      for (const SortedList& list : lists_) {
        uint64_t mask = preferred_among(list.hints);
        if (mask != 0) best.consider(mask);
      }
      return best.narrowest();
    }
    for (const LinearHints* linear : linear_) {
      uint64_t mask = preferred_among(linear->listed);
      if (mask != 0) best.consider(mask);
    }
    int budget = options_.budget;
    for (int size = least_preferred_size(); size <= count_ones(domain_); size++) {
      if (best.narrowest() != 0 && count_ones(best.narrowest()) < size) break;
      search_preferred(size, budget, best);
      if (budget >= 0) continue;
      exact_ = false;
      break;
    }
    return best.narrowest();
  }

  uint64_t reachable(int wanted) {
    std::vector<Combination> all = combinations();
    BestMasks best(options_.distances, options_.nodes);
    int budget = options_.budget;
    int size = first_size(wanted, options_.nodes, [&](int s) {
      for (const Combination& combination : all) search_reachable(combination, s, budget, best);
      return best.of_size(s) != 0;
    });
    if (budget < 0) exact_ = false;
    if (size != 0) return best.of_size(size);
    // The budget ran out before anything was found. A combination that leaves in all possible nodes
    // is always reachable.
    for (const Combination& combination : all) best.consider(combination.mask);
    return best.narrowest();
  }

 private:
  struct SortedList {
    const HintFamily* family;
    HintList hints;

    bool prefers(NodeMask mask) const {
      auto found =
          std::ranges::lower_bound(hints, mask.bits(), {}, [](const ListedHint& h) { return h.mask.bits(); });
      return found != hints.end() && found->mask == mask && found->preferred;
    }
  };

  // An AND of a hint of each family. For some families, it has the whole domain of the linear part.
  // These are the parties (a bit for each by position in linear_), which can drop some of its
  // nodes.
  struct Combination {
    uint64_t mask;
    uint64_t parties;

    friend auto operator<=>(const Combination&, const Combination&) = default;
  };

  bool all_prefer(NodeMask mask) const {
    return std::ranges::all_of(
               lists_,
               [&](const SortedList& list) { return list.family->any_preferred || list.prefers(mask); }) &&
           std::ranges::all_of(linear_, [&](const LinearHints* linear) { return linear->prefers(mask); });
  }

  uint64_t preferred_among(const HintList& hints) const {
    BestMasks best(options_.distances, options_.nodes);
    for (const ListedHint& hint : hints) {
      if (hint.preferred && all_prefer(hint.mask)) best.consider(hint.mask.bits());
    }
    return best.narrowest();
  }

  // A linear family prefers one size only, unless it is socket-aligned.
  int least_preferred_size() const {
    int least = 1;
    for (const LinearHints* linear : linear_) {
      if (linear->packages_needed == 0) least = std::max(least, linear->narrowest);
    }
    return least;
  }

  bool can_have_size(int size) const {
    return std::ranges::all_of(linear_, [&](const LinearHints* linear) {
      return linear->packages_needed > 0 || linear->narrowest == size;
    });
  }

  // True if the amounts alone decide which masks of linear parts are preferred by all.
  bool amounts_tell() const {
    return std::ranges::all_of(linear_, [&](const LinearHints* linear) {
      return linear->packages_needed == 0 && std::ranges::none_of(linear->listed, [&](const ListedHint& h) {
               return (h.mask.bits() & ~domain_) == 0;
             });
    });
  }

  // Masks in the linear part of every family.
  void search_preferred(int size, int& budget, BestMasks& best) {
    if (!can_have_size(size)) return;
    std::vector<int> nodes = nodes_of(domain_);
    SubsetSearch::Party party;
    for (const LinearHints* linear : linear_) {
      if (!linear->offers_linearly(NodeMask(domain_))) return;
      add_rows(party, *linear, nodes, domain_);
    }
    SubsetSearch search(std::move(nodes), {&party, 1}, budget, best);
    if (amounts_tell()) {
      search.run(size);
    } else {
      search.run(size, [&](uint64_t mask) { return all_prefer(NodeMask(mask)); });
    }
  }

  void search_reachable(const Combination& combination, int size, int& budget, BestMasks& best) {
    if (count_ones(combination.mask) < size || budget < 0) return;
    if (combination.parties == 0) {  // nothing can be left out
      if (count_ones(combination.mask) == size) best.consider(combination.mask);
      return;
    }
    std::vector<int> nodes = nodes_of(combination.mask);
    std::vector<SubsetSearch::Party> parties;
    for_each_node(combination.parties, [&](int i) {
      SubsetSearch::Party& party = parties.emplace_back();
      // Nodes outside the combination drop out anyway, so each resource may as well use them.
      add_rows(party, *linear_[static_cast<size_t>(i)], nodes,
               linear_[static_cast<size_t>(i)]->domain.bits());
    });
    SubsetSearch search(std::move(nodes), parties, budget, best);
    search.run(size);
  }

  static void add_rows(SubsetSearch::Party& party, const LinearHints& linear, std::span<const int> nodes,
                       uint64_t from) {
    for (const Need& need : linear.needs) {
      party.push_back(SubsetSearch::row_of(need, linear.must, nodes, need.free_in(NodeMask(from))));
    }
  }

  // The combinations that are not empty; if there are too many, the widest.
  std::vector<Combination> combinations() {
    std::vector<Combination> reached{{all_, 0}};
    for (std::vector<Combination>& choices : choices_by_family()) {
      keep_widest(choices, std::max<size_t>(1, kMostProducts / reached.size()));
      std::vector<Combination> next;
      for (const Combination& some : reached) {
        for (const Combination& choice : choices) {
          if ((some.mask & choice.mask) == 0) continue;
          next.push_back({some.mask & choice.mask, some.parties | choice.parties});
        }
      }
      std::ranges::sort(next);
      next.erase(std::unique(next.begin(), next.end()), next.end());
      keep_widest(next, kMostCombinations);
      if (next.empty()) return next;
      reached = std::move(next);
    }
    return reached;
  }

  // The choices of each family, the fewest choices first.
  std::vector<std::vector<Combination>> choices_by_family() {
    std::vector<std::vector<Combination>> all;
    for (size_t i = 0; i < linear_.size(); i++) all.push_back(choices_of_linear(i));
    for (const SortedList& list : lists_) {
      std::vector<Combination>& choices = all.emplace_back();
      for (const ListedHint& hint : list.hints) choices.push_back({hint.mask.bits(), 0});
      // A hint without a mask acts as the full mask.
      if (may_abstain(*list.family)) choices.push_back({all_, 0});
    }
    std::ranges::stable_sort(all, {}, [](const std::vector<Combination>& choices) { return choices.size(); });
    return all;
  }

  std::vector<Combination> choices_of_linear(size_t i) {
    const LinearHints& linear = *linear_[i];
    std::vector<Combination> choices;
    if (linear.offers_linearly(linear.domain)) {
      if (i >= kMostParties) exact_ = false;
      choices.push_back({linear.domain.bits(), i < kMostParties ? uint64_t{1} << i : 0});
    }
    for (const ListedHint& hint : linear.listed) {
      if (!linear.offers_linearly(hint.mask)) choices.push_back({hint.mask.bits(), 0});
    }
    return choices;
  }

  // More can be reached from a wider combination.
  void keep_widest(std::vector<Combination>& some, size_t most) {
    if (some.size() <= most) return;
    exact_ = false;
    std::ranges::stable_sort(some, std::greater(), [](const Combination& c) { return count_ones(c.mask); });
    some.resize(most);
  }

  const MergeOptions& options_;
  uint64_t all_;
  uint64_t domain_ = ~uint64_t{0};
  std::vector<const LinearHints*> linear_;
  std::vector<SortedList> lists_;
  bool exact_ = true;
};

// ---- The policies

MergedHint merge_by_masks(std::span<const HintFamily> families, const MergeOptions& options) {
  MergedHint merged;
  merged.mask = NodeMask(all_nodes(options.nodes));
  if (std::ranges::none_of(families, has_masks)) {
    merged.preferred = std::ranges::all_of(families, &HintFamily::any_preferred);
    return merged;
  }
  auto best_of = [&](auto&& masks) {
    uint64_t best = std::ranges::none_of(families, is_impossible) ? masks.preferred() : 0;
    merged.preferred = best != 0 || std::ranges::all_of(families, &HintFamily::any_preferred);
    if (!merged.preferred) {
      FewestNodes wanted;
      for (size_t i = 0; i < families.size(); i++) {
        // All types of memory of one request have the same hints.
        if (i > 0 && families[i] == families[i - 1]) continue;
        wanted = greater(wanted, narrowest(families[i], options.budget));
      }
      merged.exact = wanted.exact;
      best = masks.reachable(wanted.count);
    }
    if (best != 0) merged.mask = NodeMask(best);
  };
  if (options.nodes <= options.enumerated) {
    best_of(Enumeration(families, options));
  } else {
    Search search(families, options);
    best_of(search);
    merged.exact = merged.exact && search.exact();
  }
  return merged;
}

// Counts only preferred hints of one node or without a mask.
MergedHint merge_single_numa_node(std::span<const HintFamily> families, const MergeOptions& options) {
  MergedHint merged;
  merged.mask = NodeMask(all_nodes(options.nodes));
  auto by_all = [&](uint64_t mask) {
    return std::ranges::all_of(families, [&](const HintFamily& family) {
      return family.any_preferred || family.prefers(NodeMask(mask));
    });
  };
  bool all_any = std::ranges::all_of(families, &HintFamily::any_preferred);
  BestMasks best(options.distances, options.nodes);
  for (int node = 0; node < options.nodes; node++) {
    uint64_t mask = uint64_t{1} << node;
    bool by_one = std::ranges::any_of(
        families, [&](const HintFamily& family) { return family.prefers(NodeMask(mask)); });
    if (by_one && by_all(mask)) best.consider(mask);
  }
  if (best.of_size(1) != 0) merged.mask = NodeMask(best.of_size(1));
  merged.preferred = best.of_size(1) != 0 || all_any;
  // Like the kubelet, returns all nodes as no restriction.
  if (merged.mask.bits() == all_nodes(options.nodes)) {
    merged.any = true;
    merged.mask = NodeMask();
  }
  return merged;
}

}  // namespace

MergedHint merge_hints(std::span<const HintFamily> families, const MergeOptions& options) {
  assert(options.nodes >= 1 && options.nodes <= NodeMask::kBits);
  MergedHint merged;
  switch (options.policy) {
    case TopologyPolicy::kNone:
      merged.any = true;
      merged.admitted = true;
      return merged;
    case TopologyPolicy::kSingleNumaNode:
      merged = merge_single_numa_node(families, options);
      break;
    case TopologyPolicy::kBestEffort:
    case TopologyPolicy::kRestricted:
      merged = merge_by_masks(families, options);
      break;
  }
  merged.admitted = merged.preferred || options.policy == TopologyPolicy::kBestEffort;
  if (std::ranges::any_of(families, &HintFamily::approximate)) merged.exact = false;
  return merged;
}

}  // namespace numalign
