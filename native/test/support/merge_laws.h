// What every merge must keep to, for random hints: the walked cross product on small machines, and the search
// against the enumeration. The choices come from a seeded engine in tests and from the fuzzer's bytes in
// native/fuzz.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/hint_merger.h"
#include "hint_laws.h"
#include "random_machine.h"

namespace numalign::test {

// One hint of a list as the kubelet sees it: nullopt is no restriction on nodes.
struct PlainHint {
  std::optional<uint64_t> mask;
  bool preferred;
};

inline std::vector<PlainHint> plain_hints(const HintFamily& family) {
  std::vector<PlainHint> hints;
  if (family.any_preferred) hints.push_back({std::nullopt, true});
  if (family.any_other) hints.push_back({std::nullopt, false});
  if (auto* list = std::get_if<HintList>(&family.masks)) {
    for (const ListedHint& hint : *list) hints.push_back({hint.mask.bits(), hint.preferred});
  } else {
    for (uint64_t mask = 1; mask <= all_nodes(family.nodes); mask++) {
      if (family.offers(NodeMask(mask))) hints.push_back({mask, family.prefers(NodeMask(mask))});
    }
  }
  if (hints.empty()) hints.push_back({std::nullopt, false});
  return hints;
}

// Walks every combination of one hint a resource.
inline MergedHint walked_merge(const std::vector<HintFamily>& families, const MergeOptions& options) {
  uint64_t all = all_nodes(options.nodes);
  if (options.policy == TopologyPolicy::kNone) return {true, NodeMask(), false, true, true};
  bool single = options.policy == TopologyPolicy::kSingleNumaNode;
  std::vector<std::vector<PlainHint>> lists;
  int wanted = 0;
  for (const HintFamily& family : families) {
    std::vector<PlainHint> hints = plain_hints(family);
    if (single) {
      std::erase_if(
          hints, [](const PlainHint& h) { return !h.preferred || (h.mask && std::popcount(*h.mask) != 1); });
    }
    int narrowest = 0;
    for (const PlainHint& hint : hints) {
      if (hint.mask && (narrowest == 0 || std::popcount(*hint.mask) < narrowest))
        narrowest = std::popcount(*hint.mask);
    }
    wanted = std::max(wanted, narrowest);
    lists.push_back(std::move(hints));
  }
  auto distance = [&](uint64_t mask) {
    uint64_t sum = 0;
    for (int a = 0; a < options.nodes && !options.distances.empty(); a++) {
      for (int b = 0; b < options.nodes; b++) {
        if ((mask >> a & 1) != 0 && (mask >> b & 1) != 0) sum += options.distances[a * options.nodes + b];
      }
    }
    return sum;
  };
  struct Candidate {
    uint64_t mask;
    bool preferred;
  };
  auto narrower = [&](uint64_t a, uint64_t b) {
    if (std::popcount(a) != std::popcount(b)) return std::popcount(a) < std::popcount(b);
    uint64_t da = distance(a), db = distance(b);
    return da != db ? da < db : a < b;
  };
  auto better = [&](Candidate a, Candidate b) {
    if (a.preferred != b.preferred) return a.preferred;
    int n = std::popcount(a.mask), m = std::popcount(b.mask);
    if (!a.preferred && n != m && m <= wanted) return n <= wanted && n > m;
    return narrower(a.mask, b.mask);
  };
  std::optional<Candidate> best;
  std::vector<PlainHint> chosen;
  std::function<void(size_t)> walk = [&](size_t i) {
    if (i < lists.size()) {
      for (const PlainHint& hint : lists[i]) {
        chosen.push_back(hint);
        walk(i + 1);
        chosen.pop_back();
      }
      return;
    }
    Candidate candidate{all, true};
    std::optional<uint64_t> first;
    for (const PlainHint& hint : chosen) {
      candidate.preferred = candidate.preferred && hint.preferred;
      if (!hint.mask) continue;
      if (!first) first = hint.mask;
      candidate.preferred = candidate.preferred && *first == *hint.mask;
      candidate.mask &= *hint.mask;
    }
    if (candidate.mask != 0 && (!best || better(candidate, *best))) best = candidate;
  };
  walk(0);
  MergedHint merged{false, NodeMask(best ? best->mask : all), best && best->preferred, false, true};
  merged.admitted = merged.preferred || options.policy == TopologyPolicy::kBestEffort;
  if (single && merged.mask.bits() == all) {
    merged.any = true;
    merged.mask = NodeMask();
  }
  return merged;
}

inline HintList random_list(const Between& between, int nodes, int most) {
  HintList list;
  for (int i = between(0, most); i > 0; i--)
    list.push_back({NodeMask(random_mask(between, nodes)), chance(between, 40)});
  return list;
}

// The fewest nodes of these amounts that hold the request.
inline int fewest_of(std::vector<uint64_t> amounts, uint64_t request) {
  std::ranges::sort(amounts, std::greater());
  int count = 0;
  for (uint64_t sum = 0; sum < request && count < static_cast<int>(amounts.size()); count++) {
    sum += amounts[static_cast<size_t>(count)];
  }
  return std::max(count, 1);
}

// Amounts as a provider has them: some of each node is taken, some nodes have nothing, and packages hold
// several nodes. Some masks are listed beside.
inline std::optional<LinearHints> random_linear(const Between& between, int nodes) {
  LinearHints linear;
  linear.domain = NodeMask(chance(between, 60) ? all_nodes(nodes) : random_mask(between, nodes));
  int most = between(0, 2) == 0 ? 3 : 20;
  for (int needs = chance(between, 70) ? 1 : between(2, 3); needs > 0; needs--) {
    Need need;
    std::vector<uint64_t> totals;
    for (int node = 0; node < nodes; node++) {
      int total = linear.domain.contains(node) ? between(0, most) : 0;
      totals.push_back(static_cast<uint64_t>(total));
      need.free.push_back(static_cast<uint64_t>(between(0, total)));
    }
    need.request = static_cast<uint64_t>(between(1, std::max(1, most * nodes / 2)));
    linear.narrowest = std::max(linear.narrowest, fewest_of(totals, need.request));
    linear.needs.push_back(std::move(need));
  }
  if (chance(between, 20)) linear.must = NodeMask(random_mask(between, nodes) & linear.domain.bits());
  if (chance(between, 30)) {
    linear.packages_needed = between(1, 3);
    for (int node = 0; node < nodes; node++) linear.packages.push_back(uint64_t{1} << (node / 2));
  }
  if (chance(between, 25)) {
    for (uint64_t mask = 1; mask <= all_nodes(nodes) && linear.listed.size() < 8; mask++) {
      if (chance(between, 10)) linear.listed.push_back({NodeMask(mask), chance(between, 40)});
    }
  }
  if (linear.is_empty()) return std::nullopt;
  return linear;
}

inline HintFamily random_family(const Between& between, int nodes, int most_in_list) {
  HintFamily family;
  family.nodes = nodes;
  // Without enumeration, so that the merge may either enumerate or search.
  if (chance(between, 20)) return memory_hints(random_memory_request(between, nodes), 0);
  if (chance(between, 10)) return device_hints(random_device_request(between, nodes, false), 0);
  if (chance(between, 60)) {
    if (auto linear = random_linear(between, nodes)) {
      family.masks = *std::move(linear);
      return family;
    }
  }
  family.masks = random_list(between, nodes, most_in_list);
  family.any_preferred = chance(between, 15);
  family.any_other = chance(between, 15);
  return family;
}

inline std::string describe(const MergedHint& merged) {
  return std::string(merged.any ? "any" : "mask " + std::to_string(merged.mask.bits())) +
         (merged.preferred ? " preferred" : "") + (merged.admitted ? " admitted" : "") +
         (merged.exact ? "" : " inexact");
}

// Draws a merge and answers the law it breaks, or nothing. `walk`: small enough to walk the product.
inline std::string broken_merge_law(const Between& between, bool walk) {
  MergeOptions options;
  options.nodes = between(1, walk ? 4 : 9);
  options.policy = static_cast<TopologyPolicy>(between(0, 3));
  std::vector<HintFamily> families;
  for (int i = between(1, walk ? 4 : 3); i > 0; i--)
    families.push_back(random_family(between, options.nodes, walk ? 4 : 8));
  // All types of memory of one request have one family.
  if (chance(between, 20)) families.push_back(families.back());
  std::vector<uint32_t> distances;
  if (chance(between, 40)) {
    for (int i = 0; i < options.nodes * options.nodes; i++) {
      distances.push_back(i % (options.nodes + 1) == 0 ? 10 : static_cast<uint32_t>(between(11, 14)));
    }
    options.distances = distances;
  }
  for (const HintFamily& family : families) {
    std::optional<HintFamily> again = HintFamily::from_words(family.to_words());
    if (!again || !(*again == family)) return "a family comes back changed from its words";
  }
  MergedHint enumerated = merge_hints(families, options);
  if (walk) {
    MergedHint walked = walked_merge(families, options);
    if (walked != enumerated) return "enumerated " + describe(enumerated) + ", walked " + describe(walked);
  }
  options.enumerated = 0;
  options.budget = 100'000'000;
  MergedHint searched = merge_hints(families, options);
  if (searched != enumerated)
    return "enumerated " + describe(enumerated) + ", searched " + describe(searched);
  options.budget = between(0, 50);
  MergedHint hurried = merge_hints(families, options);
  if (hurried.exact && hurried != enumerated) return "an exact answer under a small budget is another one";
  if (!hurried.any && hurried.mask.empty()) return "a small budget leaves no mask";
  return {};
}

// Draws a family on a machine too large to enumerate, damages its words, and answers the law that reading and
// merging them breaks, or nothing.
inline std::string broken_words_law(const Between& between) {
  int nodes = between(kEnumeratedNodes + 1, NodeMask::kBits);
  HintFamily family = chance(between, 60) ? memory_hints(random_memory_request(between, nodes))
                                          : device_hints(random_device_request(between, nodes, true));
  std::vector<uint32_t> words = family.to_words();
  if (HintFamily::from_words(words) != family) return "a family comes back changed from its words";
  for (int changes = between(0, 3); changes > 0; changes--) {
    // The first words say how to read the others.
    int last = static_cast<int>(words.size()) - 1;
    size_t at = static_cast<size_t>(between(0, chance(between, 30) ? std::min(9, last) : last));
    uint32_t bit = uint32_t{1} << between(0, 31);
    words[at] = chance(between, 70) ? words[at] ^ bit : static_cast<uint32_t>(between(0, 64));
  }
  std::optional<HintFamily> damaged = HintFamily::from_words(words);
  if (!damaged) return {};
  // Flags that are not 0 or 1 are read as 1.
  if (HintFamily::from_words(damaged->to_words()) != damaged) return "a damaged family changes again";
  std::vector<HintFamily> families{*damaged, *damaged};
  if (damaged->nodes == nodes) families.push_back(family);
  MergedHint merged = merge_hints(families, {.nodes = damaged->nodes, .distances = {}, .budget = 1000});
  if (merged.mask.empty()) return "merging a damaged family leaves no mask";
  return {};
}

}  // namespace numalign::test
