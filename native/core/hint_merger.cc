#include "core/hint_merger.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace numalign {
namespace {

// ---- which of two masks is better

// The best mask of each size among those it was shown: the closest where distances count, then the lowest
// binary value.
class Best {
 public:
  explicit Best(const MergeOptions& options) : distances_(options.distances), nodes_(options.nodes) {
    masks_.fill(0);
  }

  bool by_distance() const { return !distances_.empty(); }
  uint64_t between(int a, int b) const { return distances_[a * nodes_ + b]; }

  // The sum over all pairs, both ways and with itself: it orders masks of one size as their mean distance
  // does.
  uint64_t distance(uint64_t mask) const {
    uint64_t sum = 0;
    if (!by_distance()) return sum;
    for_each_node(mask, [&](int a) { for_each_node(mask, [&](int b) { sum += between(a, b); }); });
    return sum;
  }

  void consider(uint64_t mask) {
    int size = std::popcount(mask);
    uint64_t sum = distance(mask);
    if (masks_[size] != 0) {
      if (sum != distances_of_[size] ? sum > distances_of_[size] : mask >= masks_[size]) return;
    }
    masks_[size] = mask;
    distances_of_[size] = sum;
  }

  // 0: none of that size was shown.
  uint64_t of_size(int size) const { return masks_[size]; }
  uint64_t distance_of_size(int size) const { return distances_of_[size]; }
  uint64_t narrowest() const {
    for (uint64_t mask : masks_) {
      if (mask != 0) return mask;
    }
    return 0;
  }

 private:
  std::span<const uint32_t> distances_;
  int nodes_;
  std::array<uint64_t, NodeMask::kBits + 1> masks_;
  std::array<uint64_t, NodeMask::kBits + 1> distances_of_;
};

// The order in which sizes are wanted where no mask is preferred by all: `wanted`, then the nearest below,
// then the nearest above. Answers the first for which visit() is true, or 0.
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

// ---- facts about one family

bool has_masks(const HintFamily& family) {
  if (auto* list = std::get_if<HintList>(&family.masks)) return !list->empty();
  return true;  // the other forms are made only where something is offered
}

// No mask and no hint without one: nothing can satisfy the request, which counts as a single hint that is not
// preferred.
bool is_impossible(const HintFamily& family) { return !family.any_preferred && !has_masks(family); }

// It can leave every node in: by a hint without a mask.
bool may_abstain(const HintFamily& family) {
  return family.any_preferred || family.any_other || !has_masks(family);
}

int narrowest(const HintFamily& family) {
  int least = NodeMask::kBits + 1;
  if (auto* list = std::get_if<HintList>(&family.masks)) {
    for (const ListedHint& hint : *list) least = std::min(least, hint.mask.size());
    return list->empty() ? 0 : least;
  }
  if (auto* bits = std::get_if<HintBits>(&family.masks)) {
    for (size_t i = 0; i < bits->offered.size(); i++) {
      for_each_node(bits->offered[i], [&](int bit) {
        least = std::min(least, std::popcount(i) + std::popcount(static_cast<unsigned>(bit)));
      });
    }
    return least;
  }
  const LinearHints& linear = std::get<LinearHints>(family.masks);
  std::vector<uint64_t> rest;
  for_each_node(linear.domain.bits() & ~linear.must.bits(),
                [&](int node) { rest.push_back(linear.free[node]); });
  std::ranges::sort(rest, std::greater());
  uint64_t sum = linear.free_in(linear.must);
  int count = linear.must.size();
  for (uint64_t amount : rest) {
    if (sum >= linear.request && count > 0) break;
    sum += amount;
    count++;
  }
  return count;
}

// ---- few nodes: enumerate

HintBits to_bits(const HintFamily& family) {
  if (auto* bits = std::get_if<HintBits>(&family.masks)) return *bits;
  HintBits bits;
  bits.offered.resize(HintBits::bit_words(family.nodes));
  bits.preferred.resize(bits.offered.size());
  if (auto* list = std::get_if<HintList>(&family.masks)) {
    for (const ListedHint& hint : *list) {
      HintBits::set(bits.offered, hint.mask.bits());
      if (hint.preferred) HintBits::set(bits.preferred, hint.mask.bits());
    }
    return bits;
  }
  for (uint64_t mask = 1; mask <= all_nodes(family.nodes); mask++) {
    if (!family.offers(NodeMask(mask))) continue;
    HintBits::set(bits.offered, mask);
    if (family.prefers(NodeMask(mask))) HintBits::set(bits.preferred, mask);
  }
  return bits;
}

template <class F>
void for_each_mask(std::span<const uint64_t> bits, F&& visit) {
  for (size_t i = 0; i < bits.size(); i++) {
    for_each_node(bits[i], [&](int bit) { visit(i * 64 + static_cast<size_t>(bit)); });
  }
}

// For each mask how many members of a set contain it, and back. Counts wrap around; what comes out of the way
// back is exact as long as the true numbers fit in Count.
template <class Count>
void superset_sums(std::vector<Count>& counts, bool back) {
  size_t n = counts.size();
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t block = 0; block < n; block += 2 * half) {
      Count* low = counts.data() + block;
      const Count* high = low + half;
      if (back) {
        for (size_t i = 0; i < half; i++) low[i] -= high[i];
      } else {
        for (size_t i = 0; i < half; i++) low[i] += high[i];
      }
    }
  }
}

template <class Count>
std::vector<Count> superset_sums_of(std::span<const uint64_t> bits, int nodes) {
  std::vector<Count> counts(size_t{1} << nodes);
  for_each_mask(bits, [&](size_t mask) { counts[mask] = 1; });
  superset_sums(counts, false);
  return counts;
}

// The masks that the AND of one member of each set can be: a convolution, which is a product of superset
// sums. A product of two sets of at most 2^nodes - 1 masks fits in twice as many bits as there are nodes.
template <class Count>
void and_with(std::vector<uint64_t>& reached, std::span<const uint64_t> offered, int nodes) {
  std::vector<Count> a = superset_sums_of<Count>(reached, nodes);
  std::vector<Count> b = superset_sums_of<Count>(offered, nodes);
  // Wide, since a product of two narrow unsigned numbers is computed as signed.
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<Count>(uint64_t{a[i]} * b[i]);
  superset_sums(a, true);
  std::ranges::fill(reached, 0);
  for (size_t mask = 1; mask < a.size(); mask++) {  // an AND of no nodes is no hint
    if (a[mask] != 0) HintBits::set(reached, mask);
  }
}

class Enumeration {
 public:
  Enumeration(std::span<const HintFamily> families, const MergeOptions& options) : options_(options) {
    for (const HintFamily& family : families) families_.push_back({&family, to_bits(family)});
  }

  // The best mask that every family prefers or does not care about; 0 where there is none.
  uint64_t preferred() const {
    size_t words = HintBits::bit_words(options_.nodes);
    std::vector<uint64_t> common(words, ~uint64_t{0});
    std::vector<uint64_t> any(words);
    for (const auto& [family, bits] : families_) {
      for (size_t i = 0; i < words; i++) {
        if (!family->any_preferred) common[i] &= bits.preferred[i];
        any[i] |= bits.preferred[i];
      }
    }
    Best best(options_);
    for (size_t i = 0; i < words; i++) common[i] &= any[i];
    for_each_mask(common, [&](size_t mask) { best.consider(mask); });
    return best.narrowest();
  }

  // The best mask that an AND of one hint of each family can be.
  uint64_t reachable(int wanted) const {
    std::vector<uint64_t> reached;
    for (const auto& [family, bits] : families_) {
      std::vector<uint64_t> offered = bits.offered;
      if (may_abstain(*family)) HintBits::set(offered, all_nodes(options_.nodes));
      if (reached.empty()) {
        reached = std::move(offered);
      } else if (options_.nodes <= 8) {
        and_with<uint16_t>(reached, offered, options_.nodes);
      } else {
        and_with<uint32_t>(reached, offered, options_.nodes);
      }
    }
    Best best(options_);
    for_each_mask(reached, [&](size_t mask) { best.consider(mask); });
    int size = first_size(wanted, options_.nodes, [&](int s) { return best.of_size(s) != 0; });
    return best.of_size(size);
  }

 private:
  struct Entry {
    const HintFamily* family;
    HintBits bits;
  };
  const MergeOptions& options_;
  std::vector<Entry> families_;
};

// ---- many nodes: search

// Looks for the best subset of a fixed size of some nodes by deciding, from the highest node down, which are
// left out. Leaving a node out costs something in each row (a resource: what the node has free of it), and no
// row may be overdrawn.
class SubsetSearch {
 public:
  // Leaving a node out draws on every row (the mask must do for all resources), or on one row of choice (each
  // resource has a mask of its own, and it is enough that one of them leaves the node out).
  enum class Draws { kOnAll, kOnOne };

  struct Row {
    std::vector<double> costs;  // by position in `nodes`; kNever: this row cannot leave the node out
    double slack;
  };
  static constexpr double kNever = 1e300;

  // `accept` has the last word on a complete subset. `budget` is drawn from.
  SubsetSearch(std::vector<int> nodes, std::vector<Row> rows, Draws draws, int& budget, Best& best)
      : nodes_(std::move(nodes)), rows_(std::move(rows)), draws_(draws), budget_(budget), best_(best) {
    for (const Row& row : rows_) cheapest_.push_back(prefix_sums(row.costs));
    for (size_t i = 0; i < nodes_.size(); i++) {
      lowest_.push_back(lowest_.back() | uint64_t{1} << nodes_[i]);
      by_cost_.push_back(rows_by_cost(i));
    }
    budget_ -= static_cast<int>(rows_.size() * nodes_.size() * nodes_.size() / 16);
  }

  template <class Accept>
  void run(int size, Accept&& accept) {
    size_ = size;
    kept_ = 0;
    kept_distance_ = 0;
    std::vector<double> slack;
    for (const Row& row : rows_) slack.push_back(row.slack);
    descend(static_cast<int>(nodes_.size()), static_cast<int>(nodes_.size()) - size, slack, accept);
  }

 private:
  // sums[i][k]: what leaving out the k cheapest of the first i nodes costs.
  static std::vector<std::vector<double>> prefix_sums(const std::vector<double>& costs) {
    std::vector<std::vector<double>> sums(costs.size() + 1);
    std::vector<double> sorted;
    for (size_t i = 0; i <= costs.size(); i++) {
      sums[i].push_back(0);
      for (double cost : sorted) sums[i].push_back(sums[i].back() + cost);
      if (i < costs.size()) sorted.insert(std::ranges::upper_bound(sorted, costs[i]), costs[i]);
    }
    return sums;
  }

  // The row of which the node takes the least part first.
  std::vector<int> rows_by_cost(size_t i) const {
    std::vector<int> order(rows_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int r) { return rows_[r].costs[i] / (rows_[r].slack + 1); });
    return order;
  }

  // Whether `out` of the first `left` nodes could still be left out, as far as can be said quickly.
  bool can_leave_out(int left, int out, const std::vector<double>& slack) const {
    if (draws_ == Draws::kOnAll) {
      for (size_t r = 0; r < rows_.size(); r++) {
        if (cheapest_[r][left][out] > slack[r]) return false;
      }
      return true;
    }
    int most = 0;
    for (size_t r = 0; r < rows_.size(); r++) {
      const std::vector<double>& sums = cheapest_[r][left];
      most += static_cast<int>(std::ranges::upper_bound(sums, slack[r]) - sums.begin()) - 1;
    }
    return most >= out;
  }

  // The least distance that any completion can have.
  uint64_t least_distance(int left, int missing) const {
    std::vector<uint64_t> added;
    for (int i = 0; i < left; i++) {
      uint64_t sum = best_.between(nodes_[i], nodes_[i]);
      for_each_node(
          kept_, [&](int kept) { sum += best_.between(nodes_[i], kept) + best_.between(kept, nodes_[i]); });
      added.push_back(sum);
    }
    std::ranges::sort(added);
    return std::accumulate(added.begin(), added.begin() + missing, kept_distance_);
  }

  // Whether no completion can be better than what was found.
  bool is_beaten(int left, int out) {
    if (best_.of_size(size_) == 0) return false;
    if (!best_.by_distance()) return (kept_ | lowest_[left - out]) >= best_.of_size(size_);
    budget_ -= left * (std::popcount(kept_) + 4) / 16;
    // Of masks as close, a lower one may still come.
    return least_distance(left, left - out) > best_.distance_of_size(size_);
  }

  // Decides node left-1: left out first, so that lower masks come earlier. Answers whether to go on.
  template <class Accept>
  bool descend(int left, int out, std::vector<double>& slack, Accept& accept) {
    if (out == 0) {
      complete(left, accept);
      return true;
    }
    if (--budget_ < 0) return false;
    if (out > left || is_beaten(left, out) || !can_leave_out(left, out, slack)) return true;
    int i = left - 1;
    if (draws_ == Draws::kOnAll) {
      if (!leave_out_of_all(i, out, slack, accept)) return false;
    } else if (!leave_out_of_one(i, out, slack, accept)) {
      return false;
    }
    if (out == left) return true;  // nothing can be kept any more
    return keep(nodes_[i], [&] { return descend(i, out, slack, accept); });
  }

  template <class Accept>
  bool leave_out_of_all(int i, int out, std::vector<double>& slack, Accept& accept) {
    for (size_t r = 0; r < rows_.size(); r++) {
      if (rows_[r].costs[i] > slack[r]) return true;
    }
    std::vector<double> rest = slack;
    for (size_t r = 0; r < rows_.size(); r++) rest[r] -= rows_[r].costs[i];
    return descend(i, out - 1, rest, accept);
  }

  template <class Accept>
  bool leave_out_of_one(int i, int out, std::vector<double>& slack, Accept& accept) {
    for (int r : by_cost_[i]) {
      double cost = rows_[r].costs[i];
      if (cost > slack[r]) continue;
      slack[r] -= cost;
      bool more = descend(i, out - 1, slack, accept);
      slack[r] += cost;
      // What costs nothing need not be tried elsewhere.
      if (!more || cost == 0) return more;
    }
    return true;
  }

  template <class F>
  bool keep(int node, F&& inner) {
    uint64_t before = kept_distance_;
    if (best_.by_distance()) {
      kept_distance_ += best_.between(node, node);
      for_each_node(kept_, [&](int other) {
        kept_distance_ += best_.between(node, other) + best_.between(other, node);
      });
    }
    kept_ |= uint64_t{1} << node;
    bool more = inner();
    kept_ &= ~(uint64_t{1} << node);
    kept_distance_ = before;
    return more;
  }

  template <class Accept>
  void complete(int left, Accept& accept) {
    uint64_t mask = kept_ | lowest_[left];
    if (!accept(mask)) return;
    if (best_.by_distance()) budget_ -= size_ * size_ / 16;
    best_.consider(mask);
  }

  std::vector<int> nodes_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::vector<double>>> cheapest_;
  std::vector<uint64_t> lowest_{0};  // [k]: the mask of the first k nodes
  std::vector<std::vector<int>> by_cost_;
  Draws draws_;
  int& budget_;
  Best& best_;
  int size_ = 0;
  uint64_t kept_ = 0;
  uint64_t kept_distance_ = 0;
};

std::vector<int> nodes_of(uint64_t mask) {
  std::vector<int> nodes;
  for_each_node(mask, [&](int node) { nodes.push_back(node); });
  return nodes;
}

// Combinations of lists that are followed, and how many are looked at to find them; what is beyond is cut
// off, and the answer is not exact.
constexpr size_t kMostCombinations = 4096;
constexpr size_t kMostProducts = 1'000'000;
// Rows that are combined with each other, two by two.
constexpr size_t kMostMixedRows = 4;

// A list with each mask once, ascending.
HintList sorted(HintList list) {
  // Preferred ones first, so that they are the ones that stay.
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
    // Whatever all prefer is in every list that must be met. Where no list must be, the linear families
    // decide alone.
    const SortedList* shortest = nullptr;
    for (const SortedList& list : lists_) {
      if (list.family->any_preferred) continue;
      if (!shortest || list.hints.size() < shortest->hints.size()) shortest = &list;
    }
    if (shortest) return preferred_among(shortest->hints);
    Best best(options_);
    if (linear_.empty()) {
      for (const SortedList& list : lists_) {
        uint64_t mask = preferred_among(list.hints);
        if (mask != 0) best.consider(mask);
      }
      return best.narrowest();
    }
    int budget = options_.budget;
    for (int size = least_preferred_size(); size <= std::popcount(domain_); size++) {
      search_preferred(size, budget, best);
      if (budget < 0) exact_ = false;
      if (best.of_size(size) != 0 || !exact_) return best.of_size(size);
    }
    return 0;
  }

  uint64_t reachable(int wanted) {
    std::vector<uint64_t> combinations = list_combinations();
    Best best(options_);
    int budget = options_.budget;
    int size = first_size(wanted, options_.nodes, [&](int s) {
      for (uint64_t combination : combinations) search_reachable(combination, s, budget, best);
      return best.of_size(s) != 0;
    });
    if (budget < 0) exact_ = false;
    if (size != 0) return best.of_size(size);
    // Out of budget before anything was found: what leaves every node in that can stay is always reachable.
    for (uint64_t combination : combinations) best.consider(combination);
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

  bool all_prefer(NodeMask mask) const {
    return std::ranges::all_of(
               lists_,
               [&](const SortedList& list) { return list.family->any_preferred || list.prefers(mask); }) &&
           std::ranges::all_of(linear_, [&](const LinearHints* linear) {
             return linear->offers(mask) && linear->prefers(mask);
           });
  }

  uint64_t preferred_among(const HintList& hints) const {
    Best best(options_);
    for (const ListedHint& hint : hints) {
      if (hint.preferred && all_prefer(hint.mask)) best.consider(hint.mask.bits());
    }
    return best.narrowest();
  }

  // A family that is not socket-aligned prefers one size only.
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

  void search_preferred(int size, int& budget, Best& best) {
    if (!can_have_size(size)) return;
    std::vector<int> nodes = nodes_of(domain_);
    std::vector<SubsetSearch::Row> rows;
    for (const LinearHints* linear : linear_) {
      double has = static_cast<double>(linear->free_in(NodeMask(domain_)));
      if (has < static_cast<double>(linear->request) || (linear->must.bits() & ~domain_) != 0) return;
      rows.push_back(row_of(*linear, nodes, has));
    }
    add_mixed_rows(rows);
    SubsetSearch search(std::move(nodes), std::move(rows), SubsetSearch::Draws::kOnAll, budget, best);
    search.run(size, [&](uint64_t mask) { return all_prefer(NodeMask(mask)); });
  }

  void search_reachable(uint64_t combination, int size, int& budget, Best& best) {
    if (std::popcount(combination) < size || budget < 0) return;
    std::vector<int> nodes = nodes_of(combination);
    std::vector<SubsetSearch::Row> rows;
    // Nodes outside the combination fall out by themselves, so each resource may as well use them.
    for (const LinearHints* linear : linear_) {
      rows.push_back(row_of(*linear, nodes, static_cast<double>(linear->free_in(linear->domain))));
    }
    SubsetSearch search(std::move(nodes), std::move(rows), SubsetSearch::Draws::kOnOne, budget, best);
    search.run(size, [](uint64_t) { return true; });
  }

  static SubsetSearch::Row row_of(const LinearHints& linear, const std::vector<int>& nodes, double has) {
    SubsetSearch::Row row{{}, has - static_cast<double>(linear.request)};
    for (int node : nodes) {
      row.costs.push_back(linear.must.contains(node) ? SubsetSearch::kNever
                                                     : static_cast<double>(linear.free[node]));
    }
    return row;
  }

  // What is possible for each resource alone may be impossible for two together: weighted sums of two rows
  // see some of it.
  static void add_mixed_rows(std::vector<SubsetSearch::Row>& rows) {
    size_t n = std::min(rows.size(), kMostMixedRows);
    for (size_t a = 0; a < n; a++) {
      for (size_t b = a + 1; b < n; b++) {
        for (double tilt : {0.5, 1.0, 2.0}) rows.push_back(mixed(rows[a], rows[b], tilt));
      }
    }
  }

  static SubsetSearch::Row mixed(const SubsetSearch::Row& a, const SubsetSearch::Row& b, double tilt) {
    double weight_a = tilt / (a.slack + 1);
    double weight_b = 1 / (b.slack + 1);
    // Rounding must not exclude what is possible.
    SubsetSearch::Row row{{}, (weight_a * a.slack + weight_b * b.slack) * (1 + 1e-9) + 1e-9};
    for (size_t i = 0; i < a.costs.size(); i++) {
      double cost = weight_a * a.costs[i] + weight_b * b.costs[i];
      row.costs.push_back(std::min(cost, SubsetSearch::kNever));
    }
    return row;
  }

  // Every AND of one hint of each list, within the nodes that all linear families know; where that is too
  // much, those of the widest masks.
  std::vector<uint64_t> list_combinations() {
    std::vector<uint64_t> reached{domain_};
    for (const SortedList* list : shortest_first()) {
      std::vector<uint64_t> masks;
      for (const ListedHint& hint : list->hints) masks.push_back(hint.mask.bits());
      // The full mask is what a hint without one is.
      if (may_abstain(*list->family)) masks.push_back(all_);
      keep_widest(masks, std::max<size_t>(1, kMostProducts / reached.size()));
      std::vector<uint64_t> next;
      for (uint64_t mask : reached) {
        for (uint64_t other : masks) next.push_back(mask & other);
      }
      std::ranges::sort(next);
      next.erase(std::unique(next.begin(), next.end()), next.end());
      std::erase(next, uint64_t{0});
      keep_widest(next, kMostCombinations);
      if (next.empty()) return next;
      reached = std::move(next);
    }
    return reached;
  }

  std::vector<const SortedList*> shortest_first() const {
    std::vector<const SortedList*> order;
    for (const SortedList& list : lists_) order.push_back(&list);
    std::ranges::stable_sort(order, {}, [](const SortedList* list) { return list->hints.size(); });
    return order;
  }

  // The wider a combination, the more can be reached from it.
  void keep_widest(std::vector<uint64_t>& masks, size_t most) {
    if (masks.size() <= most) return;
    exact_ = false;
    std::ranges::stable_sort(masks, std::greater(), [](uint64_t mask) { return std::popcount(mask); });
    masks.resize(most);
  }

  const MergeOptions& options_;
  uint64_t all_;
  uint64_t domain_ = ~uint64_t{0};
  std::vector<const LinearHints*> linear_;
  std::vector<SortedList> lists_;
  bool exact_ = true;
};

// ---- the policies

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
      int wanted = 0;
      for (const HintFamily& family : families) wanted = std::max(wanted, narrowest(family));
      best = masks.reachable(wanted);
    }
    if (best != 0) merged.mask = NodeMask(best);
  };
  if (options.nodes <= options.enumerated) {
    best_of(Enumeration(families, options));
  } else {
    Search search(families, options);
    best_of(search);
    merged.exact = search.exact();
  }
  return merged;
}

// Only preferred hints of one node, or without a mask, count.
MergedHint merge_single_numa_node(std::span<const HintFamily> families, const MergeOptions& options) {
  MergedHint merged;
  merged.mask = NodeMask(all_nodes(options.nodes));
  auto by_all = [&](uint64_t mask) {
    return std::ranges::all_of(families, [&](const HintFamily& family) {
      return family.any_preferred || family.prefers(NodeMask(mask));
    });
  };
  bool all_any = std::ranges::all_of(families, &HintFamily::any_preferred);
  Best best(options);
  for (int node = 0; node < options.nodes; node++) {
    uint64_t mask = uint64_t{1} << node;
    bool by_one = std::ranges::any_of(
        families, [&](const HintFamily& family) { return family.prefers(NodeMask(mask)); });
    if (by_one && by_all(mask)) best.consider(mask);
  }
  if (best.of_size(1) != 0) merged.mask = NodeMask(best.of_size(1));
  merged.preferred = best.of_size(1) != 0 || all_any;
  // As the kubelet says it: all nodes are no restriction.
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
  return merged;
}

}  // namespace numalign
