#include "core/whole_core_masks.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "core/fewest_nodes.h"

namespace numalign {

WholeCoreMasks::WholeCoreMasks(std::span<const CoreSizes> cores, std::span<const CoreClaim> claims,
                               NodeMask must, NodeMask domain)
    : cores_(cores),
      claims_(claims),
      must_(must),
      domain_(domain),
      needed_(most_at_once(claims, [](int count) { return count; })) {
  for (const CoreSizes& of_node : cores_) all_.add(of_node);
  nested_ = all_.nested(are_all_nested_);
}

Need WholeCoreMasks::need(int request, std::span<const int> sizes) const {
  Need need{static_cast<uint64_t>(request), SmallWords(cores_.size())};
  for (size_t node = 0; node < cores_.size(); node++) {
    for (int size : sizes) need.free[node] += static_cast<uint64_t>(size * cores_[node].count(size));
  }
  return need;
}

// Smaller cores must have the remainders of the claims by each size.
std::vector<Need> WholeCoreMasks::needs() const {
  std::vector<Need> needs{need(needed_, nested_)};
  for (size_t i = 0; i < nested_.size(); i++) {
    const int rest = most_at_once(claims_, [&](int count) { return count % nested_[i]; });
    if (rest > 0) needs.push_back(need(rest, std::span(nested_).first(i)));
  }
  return needs;
}

void WholeCoreMasks::add_to(SmallWords& masks) {
  // Other masks have enough cores at least, in part of other sizes.
  std::vector<int> sizes;
  for (int size = 1; size <= all_.largest(); size++) sizes.push_back(size);
  LinearHints enough;
  enough.needs.push_back(need(needed_, sizes));
  enough.must = must_;
  enough.domain = domain_;
  const SmallWords large = enough.enumerate(static_cast<int>(cores_.size())).offered;
  // The masks with as many nodes of each kind have one answer.
  enum : char { kUnknown, kYes, kNo };
  if (kinds_.empty()) find_kinds();
  std::vector<size_t> steps(cores_.size());
  size_t states = 1;
  for (const Kind& kind : kinds_) {
    for (int node : kind.nodes) steps[static_cast<size_t>(node)] = states;
    states *= kind.nodes.size() + 1;
  }
  std::vector<char> answers(states, kUnknown);
  auto state_of = [&](uint64_t mask) {
    size_t state = 0;
    for_each_node(mask, [&](int node) { state += steps[static_cast<size_t>(node)]; });
    return state;
  };
  auto answer_for = [&](uint64_t mask) {
    CoreSizes inside;
    for_each_node(mask, [&](int node) { inside.add(cores_[static_cast<size_t>(node)]); });
    return serves(inside) ? kYes : kNo;
  };
  std::array<size_t, 64> low_states{};
  for (uint64_t low = 0; low < HintBits::low_masks(cores_.size()); low++) low_states[low] = state_of(low);
  // The masks with a node, among those of the lowest six nodes.
  constexpr std::array<uint64_t, 6> kWith = {0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0,
                                             0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000};
  for (uint64_t high = 0; high < masks.size(); high++) {
    if (large[high] == 0) continue;
    const size_t high_state = state_of(high << 6);
    uint64_t& word = masks[high];
    // With a mask, those that have more nodes: the fewest first.
    for_each_node(high, [&](int bit) { word |= masks[high ^ uint64_t{1} << bit]; });
    for (uint64_t of_size : HintBits::kLowOfSize) {
      for_each_node(large[high] & ~word & of_size, [&](int low) {
        char& answer = answers[high_state + low_states[static_cast<size_t>(low)]];
        if (answer == kUnknown) answer = answer_for(high << 6 | static_cast<uint64_t>(low));
        if (answer == kYes) word |= uint64_t{1} << low;
      });
      for (size_t node = 0; node < kWith.size(); node++) word |= word << (1 << node) & kWith[node];
    }
    word &= large[high];
  }
}

void WholeCoreMasks::find_kinds() {
  std::map<std::pair<int, CoreSizes>, std::vector<int>> nodes_of;
  for_each_node(domain_.bits() & ~must_.bits(), [&](int node) {
    const CoreSizes& cores = cores_[static_cast<size_t>(node)];
    nodes_of[{-cores.total(), cores}].push_back(node);
  });
  most_of_largest_ = {0};
  for (const auto& [key, nodes] : nodes_of) {
    kinds_.push_back({key.second, nodes});
    for (size_t i = 0; i < nodes.size(); i++) most_of_largest_.push_back(most_of_largest_.back() - key.first);
  }
}

bool WholeCoreMasks::visit_masks(int size, int& tries, const Visit& visit) {
  if (kinds_.empty()) find_kinds();
  CoreSizes required;
  for_each_node(must_.bits(), [&](int node) { required.add(cores_[static_cast<size_t>(node)]); });
  std::vector<int> picks(kinds_.size());
  return descend(0, size - must_.size(), required, picks, tries, visit);
}

// Chooses how many nodes of each kind, from `kind` on.
bool WholeCoreMasks::descend(size_t kind, int left, const CoreSizes& chosen, std::vector<int>& picks,
                             int& tries, const Visit& visit) {
  if (left == 0) {
    if (--tries < 0) return false;
    std::fill(picks.begin() + static_cast<int>(kind), picks.end(), 0);
    return !serves(chosen) || expand(0, 0, picks.empty() ? 0 : picks[0], must_.bits(), picks, tries, visit);
  }
  size_t before = 0;
  for (size_t i = 0; i < kind; i++) before += kinds_[i].nodes.size();
  const size_t after = before + static_cast<size_t>(left);
  if (after >= most_of_largest_.size()) return true;
  if (chosen.total() + most_of_largest_[after] - most_of_largest_[before] < needed_) return true;
  const Kind& each = kinds_[kind];
  for (int n = std::min(left, static_cast<int>(each.nodes.size())); n >= 0; n--) {
    CoreSizes with = chosen;
    with.add(each.cores, n);
    picks[kind] = n;
    if (!descend(kind + 1, left - n, with, picks, tries, visit)) return false;
  }
  return true;
}

// Chooses `left` nodes of a kind from its node at `from` on, then the picks of the next kinds.
bool WholeCoreMasks::expand(size_t kind, size_t from, int left, uint64_t mask, const std::vector<int>& picks,
                            int& tries, const Visit& visit) {
  if (left == 0) {
    if (kind + 1 < picks.size()) return expand(kind + 1, 0, picks[kind + 1], mask, picks, tries, visit);
    return visit(NodeMask(mask)) && --tries >= 0;
  }
  const std::vector<int>& nodes = kinds_[kind].nodes;
  for (size_t i = from; i + static_cast<size_t>(left) <= nodes.size(); i++) {
    if (!expand(kind, i + 1, left - 1, mask | uint64_t{1} << nodes[i], picks, tries, visit)) return false;
  }
  return true;
}

int WholeCoreMasks::narrowest(int enumerated) {
  if (!any()) return 0;
  if (are_all_nested_) return fewest_nodes(needs(), must_, domain_).count;
  const bool is_small = static_cast<int>(cores_.size()) <= enumerated;
  int left = is_small ? std::numeric_limits<int>::max() : kMostTried;
  for (int size = std::max(1, must_.size()); size < domain_.size(); size++) {
    bool is_found = false;
    int tries = is_small ? left : left / 2;
    left -= tries;
    visit_masks(size, tries, [&](NodeMask) { return !(is_found = true); });
    if (is_found) return size;
    left += std::max(0, tries);
  }
  return domain_.size();
}

bool WholeCoreMasks::list_in(LinearHints& linear) {
  bool is_whole = true;
  int left = kMostTried;
  auto list = [&](NodeMask mask) {
    if (!linear.offers_linearly(mask)) linear.listed.push_back({mask, false});
    return linear.listed.size() < kMostListed;
  };
  for (int size = std::max(1, must_.size()); size < domain_.size(); size++) {
    if (linear.listed.size() >= kMostListed) {
      is_whole = false;
      break;
    }
    int tries = left / 2;
    left -= tries;
    is_whole &= visit_masks(size, tries, list);
    left += std::max(0, tries);
  }
  if (any()) list(domain_);
  std::ranges::sort(linear.listed, {}, [](const ListedHint& hint) { return hint.mask.bits(); });
  for (ListedHint& hint : linear.listed) hint.preferred = linear.prefers_linearly(hint.mask);
  return is_whole;
}

}  // namespace numalign
