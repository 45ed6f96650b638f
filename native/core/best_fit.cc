#include "core/best_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/cpu_hints.h"

namespace numalign {
namespace {

// Up to this many NUMA nodes, tries every combination, like the kubelet; above it, ranks them. 8
// nodes give at most 3^8 pairs (combination, remainder subset); 16 would give 43 million.
constexpr size_t kMostCombinedNodes = 8;

// The free CPUs, the taken CPUs, and the orders in which elements are tried.
class Accumulator {
 public:
  Accumulator(const Topology& topology, const CpuSet& available, int count, const BestFitOptions& options)
      : topology_(topology),
        free_(topology.words()),
        taken_(topology.words()),
        needed_(count),
        spread_(options.spread),
        any_rest_in_l3_(options.any_rest_in_l3),
        numa_first_(topology.packages().count() >= topology.nodes().count()),
        bounds_l3_(options.fewest_l3 || topology.cores().uniform_size() == 0 ||
                   topology.packages().uniform_size() == 0 || topology.l3_groups().uniform_size() == 0) {
    std::span<const uint64_t> all = topology.cpus().words();
    std::span<const uint64_t> words = available.words();
    for (size_t i = 0; i < std::min(all.size(), words.size()); i++) free_[i] = all[i] & words[i];
  }

  int free_count() const {
    return std::accumulate(free_.begin(), free_.end(), 0,
                           [](int n, uint64_t w) { return n + count_ones(w); });
  }
  int free_in_node(int node) const { return topology_.nodes().free_in(node, free_); }
  bool satisfied() const { return needed_ == 0; }
  CpuSet taken() const { return CpuSet::from_words(taken_); }

  void take_packed(bool align_by_l3) {
    if (satisfied()) return;
    // The kubelet takes whole NUMA nodes first, too, if they are the wider elements.
    if (numa_first_) take_nodes();
    if (satisfied()) return;
    if (align_by_l3 && bounds_l3_) most_l3_groups_ = fewest_l3_groups(l3_rooms());
    take_packages();
    if (satisfied()) return;
    if (!numa_first_) take_nodes();
    if (satisfied()) return;
    if (align_by_l3) take_l3_groups();
    if (satisfied()) return;
    unless_more_l3_groups([&] { take_cores_and_cpus(); });
    if (satisfied()) return;
    narrow_to_fewest_l3_groups();
    take_cores_and_cpus();
  }

  CoreSizes free_cores() const { return free_cores(all_of(topology_.cores())); }

  // From now on, leaves whole cores for `later` claims: free ones, and `others`. False if there are not
  // enough for both.
  bool leave(std::span<const CoreClaim> later, CoreSizes others) {
    claims_ = {{needed_, false}};
    claims_.insert(claims_.end(), later.begin(), later.end());
    others_ = std::move(others);
    return can_serve(free_cores());
  }

  // True if these CPUs would leave enough.
  bool leaves_enough_without(const CpuSet& cpus) const {
    Accumulator rest = *this;
    for (size_t i = 0; i < cpus.words().size(); i++) rest.free_[i] &= ~cpus.words()[i];
    rest.claims_[0].count = 0;
    return rest.can_serve(rest.free_cores());
  }

  // Takes whole cores that add up to what is needed, in packed order. Takes nothing if they do not
  // add up.
  void take_whole_cores() {
    const Level& cores = topology_.cores();
    CoreSizes undecided;
    std::vector<int> order;
    std::vector<bool> is_visited(cores.count());
    for_each_core([&](int core) {  // comes under each element that contains it
      if (is_visited[core] || !is_free(cores, core)) return;
      is_visited[core] = true;
      order.push_back(core);
      undecided.add(cores.size(core));
    });
    if (!can_serve(undecided)) return;
    std::vector<int> chosen;
    int& left = claims_[0].count;
    for (int core : order) {
      const int size = cores.size(core);
      undecided.add(size, -1);
      left -= size;
      if (left >= 0 && can_serve(undecided)) {
        chosen.push_back(core);
      } else {
        left += size;
        others_.add(size);
      }
    }
    if (left > 0) return;
    for (int core : chosen) take(cores, core);
  }

  // Leaves free only the first L3 group whose free cores add up to what is needed; if there is
  // none, as many of the widest groups as needed.
  void narrow_to_l3_with_whole_cores() {
    const CoreSizes all = free_cores();
    auto narrow_if_enough = [&](const std::vector<int>& chosen, const CoreSizes& inside) {
      CoreSizes others = others_;
      others.add(all);
      others.add(inside, -1);
      std::swap(others, others_);
      if (can_serve(inside)) {
        narrow_to_l3(chosen);
        return true;
      }
      std::swap(others, others_);
      return false;
    };
    auto cores_of = [&](int group) { return free_cores(topology_.cores_of_l3()[group]); };
    std::vector<int> groups = l3_order();
    for (int group : groups) {
      if (narrow_if_enough({group}, cores_of(group))) return;
    }
    std::ranges::stable_sort(groups, std::greater<>(), [&](int group) { return cores_of(group).total(); });
    std::vector<int> chosen;
    CoreSizes inside;
    for (int group : groups) {
      if (std::ranges::find(chosen, group) != chosen.end()) continue;
      chosen.push_back(group);
      inside.add(cores_of(group));
      if (narrow_if_enough(chosen, inside)) return;
    }
  }

  // Takes `count` CPUs of one NUMA node, packed.
  void take_in_node(int node, int count) {
    std::vector<uint64_t> others = free_;
    std::fill(free_.begin(), free_.end(), 0);
    for (const Level::WordMask& m : topology_.nodes().masks(node)) {
      free_[m.word] = others[m.word] & m.mask;
      others[m.word] &= ~m.mask;
    }
    int rest = needed_ - count;
    needed_ = count;
    take_packed(false);
    needed_ += rest;
    for (size_t i = 0; i < free_.size(); i++) free_[i] |= others[i];
  }

  // NUMA nodes with free CPUs, in the order to drain them: fewest free CPUs first, then the lower
  // id.
  std::vector<int> node_order() const {
    if (numa_first_) return by_free_count(topology_.nodes(), all_of(topology_.nodes()));
    return nested_order(package_order(), topology_.nodes_of_package(), topology_.packages(),
                        topology_.nodes());
  }

 private:
  static std::vector<int> all_of(const Level& level) {
    std::vector<int> all(level.count());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  // The `candidates` (ascending) that have free CPUs: fewest free first, then the lower id.
  std::vector<int> by_free_count(const Level& level, const std::vector<int>& candidates) const {
    std::vector<int> counts(candidates.size());
    int most = 0;
    for (size_t i = 0; i < candidates.size(); i++) {
      counts[i] = level.free_in(candidates[i], free_);
      most = std::max(most, counts[i]);
    }
    // Where each count begins. The candidates are in the order of their ids already.
    std::vector<int> begins(static_cast<size_t>(most) + 2);
    for (int n : counts) begins[static_cast<size_t>(n) + 1] += n > 0 ? 1 : 0;
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<int> order(static_cast<size_t>(begins.back()));
    for (size_t i = 0; i < candidates.size(); i++) {
      if (counts[i] > 0) order[static_cast<size_t>(begins[static_cast<size_t>(counts[i])]++)] = candidates[i];
    }
    return order;
  }

  // The inner elements of each outer one in turn. Like the kubelet, lists an inner element under
  // every outer one in which it has free CPUs.
  std::vector<int> nested_order(const std::vector<int>& outer_order, const Topology::Members& members,
                                const Level& outer, const Level& inner) const {
    std::vector<int> order;
    std::vector<int> inside;
    for (int element : outer_order) {
      inside.clear();
      for (int candidate : members[element]) {
        if (shares_free_cpu(inner, candidate, outer, element)) inside.push_back(candidate);
      }
      std::vector<int> sorted = by_free_count(inner, inside);
      order.insert(order.end(), sorted.begin(), sorted.end());
    }
    return order;
  }

  bool shares_free_cpu(const Level& inner, int candidate, const Level& outer, int element) const {
    for (const Level::WordMask& a : inner.masks(candidate)) {
      for (const Level::WordMask& b : outer.masks(element)) {
        if (a.word == b.word && (free_[a.word] & a.mask & b.mask) != 0) return true;
      }
    }
    return false;
  }

  std::vector<int> package_order() const {
    if (!numa_first_) return by_free_count(topology_.packages(), all_of(topology_.packages()));
    return nested_order(node_order(), topology_.packages_of_node(), topology_.nodes(), topology_.packages());
  }

  // Calls visit(core) for cores with free CPUs, package by package or node by node, until no more
  // are needed. A core lies in one package and one node, so taking others does not change its turn.
  template <class F>
  void for_each_core(F&& visit) {
    const auto& members = numa_first_ ? topology_.cores_of_package() : topology_.cores_of_node();
    for (int outer : numa_first_ ? package_order() : node_order()) {
      for (int core : by_free_count(topology_.cores(), members[outer])) {
        if (satisfied()) return;
        visit(core);
      }
    }
  }

  std::vector<int> l3_order() const {
    return nested_order(node_order(), topology_.l3_groups_of_node(), topology_.nodes(),
                        topology_.l3_groups());
  }

  CoreSizes free_cores(const std::vector<int>& candidates) const {
    CoreSizes sizes;
    for (int core : candidates) {
      if (is_free(topology_.cores(), core)) sizes.add(topology_.cores().size(core));
    }
    return sizes;
  }

  // True if `cores` add up to what is needed, and the rest to the later claims.
  bool can_serve(const CoreSizes& cores) const {
    int budget = CoreSizes::kBudget;
    return cores.can_serve(claims_, budget, others_);
  }

  bool is_free(const Level& level, int element) const {
    return level.free_in(element, free_) == level.size(element);
  }

  void take(const Level& level, int element) {
    for (const Level::WordMask& m : level.masks(element)) {
      uint64_t cpus = free_[m.word] & m.mask;
      taken_[m.word] |= cpus;
      free_[m.word] &= ~cpus;
      needed_ -= count_ones(cpus);
    }
  }

  // If even the smallest node is too large, the order does not matter.
  void take_nodes() {
    if (topology_.nodes().least_size() <= needed_) take_whole(topology_.nodes(), node_order());
  }

  void take_packages() {
    if (topology_.packages().least_size() <= needed_) take_whole(topology_.packages(), package_order());
  }

  void take_cores() {
    const Level& cores = topology_.cores();
    if (cores.least_size() > needed_) return;
    const auto& members = numa_first_ ? topology_.cores_of_package() : topology_.cores_of_node();
    for (int outer : numa_first_ ? package_order() : node_order()) {
      if (satisfied()) return;
      // Whole cores of one size come in the order of their ids.
      if (cores.uniform_size() > 0) {
        take_whole(cores, members[outer]);
      } else {
        take_whole(cores, by_free_count(cores, members[outer]));
      }
    }
  }

  void take_whole(const Level& level, const std::vector<int>& order) {
    for (int element : order) {
      if (satisfied()) return;
      take_if_whole(level, element);
    }
  }

  void take_if_whole(const Level& level, int element) {
    if (level.size(element) > needed_ || !is_free(level, element)) return;
    unless_more_l3_groups([&] { take(level, element); });
  }

  // If one group holds all of the rest, takes the smallest such group. Else takes whole groups, and
  // one group for the remainder.
  void take_l3_groups() {
    std::vector<int> order = l3_order();
    take_part_of_one_l3(order);
    take_whole(topology_.l3_groups(), order);
    take_part_of_one_l3(order);
  }

  void take_part_of_one_l3(const std::vector<int>& order) {
    for (int group : order) {
      if (satisfied()) return;
      unless_more_l3_groups([&] { take_part_of_l3(group); });
    }
  }

  // The free CPUs of an L3 group. Whole cores count if they are taken first.
  struct L3Room {
    bool used;  // the result has CPUs of it
    int cores;
    int cpus;
    auto operator<=>(const L3Room&) const = default;
  };

  bool wants_whole_cores() const { return !spread_ && topology_.cores().uniform_size() > 0; }

  std::vector<L3Room> l3_rooms() const {
    const Level& groups = topology_.l3_groups();
    std::vector<L3Room> rooms;
    for (int group = 0; group < groups.count(); group++) {
      auto is_whole = [&](int core) { return is_free(topology_.cores(), core); };
      auto cores = wants_whole_cores() ? std::ranges::count_if(topology_.cores_of_l3()[group], is_whole) : 0;
      rooms.push_back(
          {groups.free_in(group, taken_) > 0, static_cast<int>(cores), groups.free_in(group, free_)});
    }
    return rooms;
  }

  // The fewest L3 groups of any result: the used ones, and the widest of the others. If whole cores
  // are wanted, considers only results with as many of them as possible.
  int fewest_l3_groups(std::vector<L3Room> rooms) const {
    std::ranges::sort(rooms, std::greater<>());
    int cores_needed = 0;
    if (wants_whole_cores()) {
      for (const L3Room& room : rooms) cores_needed += room.cores;
      cores_needed = std::min(cores_needed, needed_ / topology_.cores().uniform_size());
    }
    int groups = 0;
    int cores = 0;
    int cpus = 0;
    for (const L3Room& room : rooms) {
      if (!room.used && cores >= cores_needed && cpus >= needed_) break;
      groups++;
      cores += room.cores;
      cpus += room.cpus;
    }
    return groups;
  }

  // Runs take(), unless it takes more L3 groups than needed.
  template <class F>
  void unless_more_l3_groups(F&& take) {
    if (most_l3_groups_ == 0) return take();
    auto before = std::tuple(free_, taken_, needed_);
    take();
    if (fewest_l3_groups(l3_rooms()) > most_l3_groups_) std::tie(free_, taken_, needed_) = before;
  }

  // Leaves free only the fewest L3 groups that hold the rest, the first in their order.
  void narrow_to_fewest_l3_groups() {
    std::vector<L3Room> rooms = l3_rooms();
    for (int group : l3_order()) {
      std::vector<L3Room> with = rooms;
      with[group].used = true;
      if (fewest_l3_groups(with) <= most_l3_groups_) rooms = std::move(with);
    }
    std::vector<int> chosen;
    for (int group = 0; group < topology_.l3_groups().count(); group++) {
      if (rooms[group].used) chosen.push_back(group);
    }
    narrow_to_l3(chosen);
  }

  void narrow_to_l3(const std::vector<int>& groups) {
    std::vector<uint64_t> inside(free_.size());
    for (int group : groups) {
      for (const Level::WordMask& m : topology_.l3_groups().masks(group)) inside[m.word] |= m.mask;
    }
    for (size_t i = 0; i < free_.size(); i++) free_[i] &= inside[i];
  }

  struct Cores {
    std::vector<int> chosen;
    int size = 0;  // of all together
    int free = 0;
  };

  // The lowest cores with free CPUs of an L3 group, enough for what is still needed.
  Cores lowest_cores_of_l3(int group) const {
    const Level& cores = topology_.cores();
    Cores lowest;
    for (int core : topology_.cores_of_l3()[group]) {
      if (lowest.size >= needed_) break;
      int n = cores.free_in(core, free_);
      if (n == 0) continue;
      lowest.chosen.push_back(core);
      lowest.size += cores.size(core);
      lowest.free += n;
    }
    return lowest;
  }

  // Takes what is still needed from the lowest cores of an L3 group, if that is all that they have
  // free; for an odd number, all but the highest CPU. Otherwise takes nothing.
  void take_rest_in_l3(int group) {
    const Level& cores = topology_.cores();
    const auto [chosen, size, free] = lowest_cores_of_l3(group);
    bool is_odd = needed_ % 2 == 1 && free == needed_ + 1 && cores.uniform_size() != 1;
    if (free != needed_ && !is_odd) return;
    int split = is_odd ? core_of_highest_cpu(chosen) : -1;
    for (int core : chosen) {
      if (core != split) take(cores, core);
    }
    if (split < 0) return;
    // The rest that a fully free core should give. A single CPU need not split that core.
    bool is_single = needed_ == 1 && is_free(cores, split);
    int part = is_single ? core_used_in_part(group, chosen.size() == 1) : -1;
    take_lowest_cpus(cores, part < 0 ? split : part);
  }

  int core_of_highest_cpu(const std::vector<int>& candidates) const {
    auto highest = [&](int core) {
      int found = -1;
      for (const Level::WordMask& m : topology_.cores().masks(core)) {
        uint64_t w = free_[m.word] & m.mask;
        if (w != 0) found = std::max(found, static_cast<int>(m.word) * 64 + 63 - std::countl_zero(w));
      }
      return found;
    };
    return *std::ranges::max_element(candidates, {}, highest);
  }

  // The lowest partly free core of an L3 group. `anywhere`: or else of the next group that has one.
  // -1 if there is none.
  int core_used_in_part(int group, bool anywhere) const {
    std::vector<int> groups = {group};
    if (anywhere) std::ranges::copy(l3_order(), std::back_inserter(groups));
    for (int each : groups) {
      for (int core : topology_.cores_of_l3()[each]) {
        int n = topology_.cores().free_in(core, free_);
        if (n > 0 && n < topology_.cores().size(core)) return core;
      }
    }
    return -1;
  }

  // Takes the lowest cores of an L3 group if they are exactly what is still needed; else nothing.
  void take_part_of_l3(int group) {
    if (any_rest_in_l3_) return take_rest_in_l3(group);
    const auto [chosen, size, free] = lowest_cores_of_l3(group);
    if (size != needed_ || free != needed_) return;
    for (int core : chosen) take(topology_.cores(), core);
  }

  void take_cpu(uint32_t word, uint64_t bit) {
    taken_[word] |= bit;
    free_[word] &= ~bit;
    needed_--;
  }

  void take_lowest_cpus(const Level& level, int element) {
    for (const Level::WordMask& m : level.masks(element)) {
      for (uint64_t w = free_[m.word] & m.mask; w != 0 && needed_ > 0; w &= w - 1) take_cpu(m.word, w & -w);
    }
  }

  void take_cores_and_cpus() {
    if (!spread_) take_cores();
    if (!satisfied()) take_single_cpus();
  }

  // Packed: core by core, so that partly used cores are used up first. Spread: package by package.
  void take_single_cpus() {
    if (spread_) {
      for (int package : package_order()) take_lowest_cpus(topology_.packages(), package);
    } else {
      for_each_core([&](int core) { take_lowest_cpus(topology_.cores(), core); });
    }
  }

  const Topology& topology_;
  std::vector<uint64_t> free_;
  std::vector<uint64_t> taken_;
  int needed_;
  bool spread_;
  bool any_rest_in_l3_;
  bool numa_first_;
  bool bounds_l3_;                 // by request, or the kubelet's averages are wrong for some element
  int most_l3_groups_ = 0;         // the limit for the result; 0: any number
  std::vector<CoreClaim> claims_;  // with whole cores: what is needed, and later claims
  CoreSizes others_;               // cores for later claims only
};

// How many CPUs each node gives: `each` from each of `nodes`, and the rest in groups from `remainder`.
struct Distribution {
  int each = 0;
  std::vector<int> nodes;
  std::vector<int> remainder;
};

// Chooses the nodes of a distribution over exactly k nodes so that the remaining free CPUs are as
// even as possible.
class Balancer {
 public:
  // free[i]: free CPUs of the i-th node in drain order. REQUIRES: count is a multiple of
  // group_size.
  Balancer(std::vector<int> free, int count, int group_size)
      : free_(std::move(free)), count_(count), group_size_(group_size) {
    std::vector<int> all(free_.size());
    std::iota(all.begin(), all.end(), 0);
    sides_ = {std::move(all)};
  }

  // From now on, takes all nodes from one of `sides`, lists of positions that each hold the request,
  // and from a node with less than its share what it has in whole groups. Does nothing without sides.
  void keep_to(std::vector<std::vector<int>> sides) {
    if (sides.empty()) return;
    sides_ = std::move(sides);
    is_even_ = false;
  }

  // Returns positions in `free`; empty if k nodes cannot serve the request.
  Distribution over(int k) {
    best_ = {};
    best_score_ = std::numeric_limits<double>::max();
    best_squares_ = std::numeric_limits<int64_t>::max();
    for (const std::vector<int>& side : sides_) {
      if (static_cast<int>(side.size()) < k) continue;
      std::vector<int> combination;
      const bool can_be_better =
          side.size() <= kMostCombinedNodes
              ? enumerate(side, k, 0, combination, [&] { return consider_combination(combination); })
              : consider_combination(widest(side, k, free_));
      if (!can_be_better) break;
    }
    return best_;
  }

 private:
  // Calls visit() for each subset of k of `from`, in order of position, until it returns false.
  template <class F>
  static bool enumerate(const std::vector<int>& from, int k, size_t begin, std::vector<int>& subset,
                        F&& visit) {
    if (k == 0) return visit();
    for (size_t i = begin; i + k <= from.size(); i++) {
      subset.push_back(from[i]);
      bool more = enumerate(from, k - 1, i + 1, subset, visit);
      subset.pop_back();
      if (!more) return false;
    }
    return true;
  }

  // The k of `from` with the most CPUs in `amounts`, ascending. Taking from the fullest leaves the
  // rest most even.
  static std::vector<int> widest(std::vector<int> from, int k, const std::vector<int>& amounts) {
    std::ranges::stable_sort(from, [&](int a, int b) { return amounts[a] > amounts[b]; });
    from.resize(std::min(from.size(), static_cast<size_t>(k)));
    std::ranges::sort(from);
    return from;
  }

  // Returns true if a better combination can still exist.
  bool consider_combination(const std::vector<int>& combination) {
    int k = static_cast<int>(combination.size());
    int each = count_ / k / group_size_ * group_size_;
    int groups = 0;
    for (int node : combination) {
      if (free_[node] < each) {
        if (is_even_) return true;
        each = free_[node] / group_size_ * group_size_;
      }
      groups += free_[node] / group_size_;
    }
    if (groups * group_size_ < count_) return true;
    std::vector<int> left = free_;
    for (int node : combination) left[node] -= each;
    int remainder = count_ - each * k;
    if (remainder == 0) {
      consider({each, combination, {}}, left);
      return best_score_ != 0;
    }
    std::vector<int> givers;
    for (int node : combination) {
      if (left[node] >= group_size_) givers.push_back(node);
    }
    for (int n = std::min(remainder / group_size_, static_cast<int>(givers.size())); n > 0; n--) {
      if (free_.size() > kMostCombinedNodes) {
        consider_remainder({each, combination, widest(givers, n, left)}, left, remainder);
        continue;
      }
      std::vector<int> subset;
      enumerate(givers, n, 0, subset, [&] {
        consider_remainder({each, combination, subset}, left, remainder);
        return true;
      });
    }
    return best_score_ != 0;
  }

  void consider_remainder(const Distribution& candidate, std::vector<int> left, int remainder) {
    int groups = 0;
    for (int node : candidate.remainder) groups += left[node] / group_size_;
    if (groups * group_size_ < remainder) return;
    while (remainder > 0) {
      for (int node : candidate.remainder) {
        if (remainder == 0) break;
        if (left[node] < group_size_) continue;
        left[node] -= group_size_;
        remainder -= group_size_;
      }
    }
    consider(candidate, left);
  }

  void consider(const Distribution& candidate, const std::vector<int>& left) {
    // The sum is the same for all candidates, so the deviation grows with the squares. Most
    // candidates need no square root.
    int64_t squares = 0;
    for (int n : left) squares += int64_t{n} * n;
    if (squares >= best_squares_) return;
    double score = standard_deviation(left);
    best_squares_ = squares;
    if (score >= best_score_) return;
    best_score_ = score;
    best_ = candidate;
  }

  // Rounds to thousandths like the kubelet, because rounding decides which candidates are equal.
  static double standard_deviation(const std::vector<int>& values) {
    auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
    double n = static_cast<double>(values.size());
    double mean = rounded(std::accumulate(values.begin(), values.end(), 0.0) / n);
    double sum = 0;
    for (int value : values) sum += (value - mean) * (value - mean);
    return rounded(std::sqrt(sum / n));
  }

  std::vector<int> free_;
  int count_;
  int group_size_;
  std::vector<std::vector<int>> sides_;  // a combination is of one of them
  bool is_even_ = true;                  // each node of a combination has its share
  Distribution best_;
  double best_score_ = 0;
  int64_t best_squares_ = 0;
};

int divide_up(int a, int b) { return (a - 1) / b + 1; }

// The packages whose nodes hold the request in whole groups, as positions in `nodes`.
std::vector<std::vector<int>> sides_that_hold(const Topology& topology, const std::vector<int>& nodes,
                                              const std::vector<int>& amounts, int count, int group_size) {
  std::vector<std::vector<int>> sides;
  for (const std::vector<int>& package : topology.nodes_of_package()) {
    std::vector<int> side;
    int room = 0;
    for (int i = 0; i < static_cast<int>(nodes.size()); i++) {
      if (std::ranges::find(package, nodes[i]) == package.end()) continue;
      side.push_back(i);
      room += amounts[i] / group_size * group_size;
    }
    if (room >= count) sides.push_back(std::move(side));
  }
  return sides;
}

CpuSet take_distributed(const Topology& topology, Accumulator free, int count,
                        const BestFitOptions& options) {
  const int group_size = options.cpu_group_size;
  // A node in several packages is listed under each of them, but can give its CPUs only once.
  std::vector<int> nodes;
  for (int node : free.node_order()) {
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
  std::vector<int> amounts;
  for (int node : nodes) amounts.push_back(free.free_in_node(node));

  // Like the kubelet, counts the fewest nodes on the empty machine at its average node size.
  int groups_in_node = divide_up(divide_up(topology.cpus().size(), group_size), topology.nodes().count());
  int groups_needed = divide_up(count, group_size);
  int fewest = divide_up(groups_needed, groups_in_node);
  int most = std::min(groups_needed, static_cast<int>(nodes.size()));
  if (options.least_nodes <= static_cast<int>(nodes.size())) fewest = std::max(fewest, options.least_nodes);

  Balancer balancer(amounts, count, group_size);
  if (options.keep_package) balancer.keep_to(sides_that_hold(topology, nodes, amounts, count, group_size));
  for (int k = fewest; k <= most; k++) {
    Distribution chosen = balancer.over(k);
    if (chosen.nodes.empty()) continue;
    for (int i : chosen.nodes) free.take_in_node(nodes[i], chosen.each);
    while (!free.satisfied()) {
      for (int i : chosen.remainder) {
        if (free.satisfied()) break;
        if (free.free_in_node(nodes[i]) >= group_size) free.take_in_node(nodes[i], group_size);
      }
    }
    return free.taken();
  }
  free.take_packed(false);
  return free.taken();
}

Result<CpuSet> take_whole(const Topology& topology, const CpuSet& available, int count,
                          const BestFitOptions& options) {
  BestFitOptions plain = options;
  plain.whole_cores = false;
  const CpuSet usual = best_fit(topology, available, count, plain).value();
  const bool is_whole = whole_cores(topology, usual) == usual;
  // Takes for the later containers what it can: the rest, else also CPUs elsewhere, else nothing.
  Accumulator elsewhere(topology, options.elsewhere - available, 0, options);
  for (std::span<const CoreClaim> later = options.later;; later = {}) {
    for (const CoreSizes& from : {CoreSizes(), elsewhere.free_cores()}) {
      Accumulator free(topology, available, count, options);
      if (!free.leave(later, from)) continue;
      if (is_whole && free.leaves_enough_without(usual)) return usual;
      if (options.align_by_l3 && !options.distribute_across_numa) free.narrow_to_l3_with_whole_cores();
      free.take_whole_cores();
      if (free.satisfied()) return free.taken();
    }
    if (later.empty()) break;
  }
  return Error{ErrorCode::kInsufficientCpus,
               "free cores do not add up to the " + std::to_string(count) + " CPUs asked for"};
}

}  // namespace

Result<CpuSet> best_fit(const Topology& topology, const CpuSet& available, int count,
                        const BestFitOptions& options) {
  assert(count >= 0 && options.cpu_group_size >= 1);
  Accumulator free(topology, available, count, options);
  int free_count = free.free_count();
  if (free_count < count) {
    return Error{ErrorCode::kInsufficientCpus, std::to_string(count) + " CPUs were asked for, " +
                                                   std::to_string(free_count) + " are available"};
  }
  if (count == 0) return CpuSet();
  if (options.whole_cores) return take_whole(topology, available, count, options);
  bool distribute = options.distribute_across_numa && count % options.cpu_group_size == 0;
  if (distribute) return take_distributed(topology, std::move(free), count, options);
  free.take_packed(options.align_by_l3 && !options.distribute_across_numa);
  return free.taken();
}

}  // namespace numalign
