#include "core/subset_search.h"

#include <algorithm>
#include <numeric>

namespace numalign {
namespace {

// At most this many rows of a party are combined in pairs.
constexpr size_t kMostMixedRows = 4;

SubsetSearch::Row mixed(const SubsetSearch::Row& a, const SubsetSearch::Row& b, double tilt) {
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

// Meeting each need alone may be possible, but not two together. Weighted sums of two rows show
// some of these cases.
void add_mixed_rows(SubsetSearch::Party& party) {
  size_t n = std::min(party.size(), kMostMixedRows);
  for (size_t a = 0; a < n; a++) {
    for (size_t b = a + 1; b < n; b++) {
      for (double tilt : {0.5, 1.0, 2.0}) party.push_back(mixed(party[a], party[b], tilt));
    }
  }
}

}  // namespace

SubsetSearch::Row SubsetSearch::row_of(const Need& need, NodeMask must, std::span<const int> nodes,
                                       uint64_t has) {
  Row row{{}, static_cast<double>(has) - static_cast<double>(need.request)};
  for (int node : nodes) {
    row.costs.push_back(must.contains(node) ? kNever : static_cast<double>(need.free[node]));
  }
  return row;
}

SubsetSearch::CheapestSums::CheapestSums(const std::vector<double>& costs) {
  sums_.reserve((costs.size() + 1) * (costs.size() + 2) / 2);
  std::vector<double> sorted;
  for (size_t left = 0; left <= costs.size(); left++) {
    double sum = 0;
    sums_.push_back(sum);
    for (double cost : sorted) sums_.push_back(sum += cost);
    if (left < costs.size()) sorted.insert(std::ranges::upper_bound(sorted, costs[left]), costs[left]);
  }
}

int SubsetSearch::CheapestSums::most(int left, double slack) const {
  const double* sums = row(left);
  return static_cast<int>(std::upper_bound(sums, sums + left + 1, slack) - sums) - 1;
}

SubsetSearch::SubsetSearch(std::vector<int> nodes, std::span<const Party> parties, int& budget,
                           BestMasks& best)
    : nodes_(std::move(nodes)), budget_(budget), best_(best) {
  for (const Party& party : parties) add_party(party);
  for (const Row& row : rows_) cheapest_.emplace_back(row.costs);
  for (size_t i = 0; i < nodes_.size(); i++) {
    lowest_.push_back(lowest_.back() | uint64_t{1} << nodes_[i]);
    by_cost_.push_back(parties_by_cost(i));
    preceding_.push_back(preceding(i));
  }
  budget_ -= static_cast<int>(rows_.size() * nodes_.size() * nodes_.size() / 16);
  step_ = 1 + static_cast<int>(slacks_width_ / (parties_.size() == 1 ? 16 : 4));
}

void SubsetSearch::add_party(const Party& rows_of_party) {
  Party party;
  for (const Row& row : rows_of_party) {
    if (std::ranges::find(party, row) == party.end()) party.push_back(row);
  }
  add_mixed_rows(party);
  PartyRows rows{rows_.size(), rows_.size() + party.size(), slacks_width_, -1};
  for (size_t p = 0; p < parties_.size(); p++) {
    std::span<const Row> others(rows_.begin() + static_cast<std::ptrdiff_t>(parties_[p].first),
                                rows_.begin() + static_cast<std::ptrdiff_t>(parties_[p].last));
    if (!std::ranges::equal(others, party)) continue;
    rows.first = parties_[p].first;
    rows.last = parties_[p].last;
    rows.twin = static_cast<int>(p);
  }
  parties_.push_back(rows);
  slacks_width_ += party.size();
  if (rows.twin < 0) rows_.insert(rows_.end(), party.begin(), party.end());
}

// The parties in the order of their cost for the node, the lowest first.
std::vector<size_t> SubsetSearch::parties_by_cost(size_t node) const {
  std::vector<double> parts;
  for (const PartyRows& party : parties_) {
    double part = 0;
    for (size_t r = party.first; r < party.last; r++) {
      part = std::max(part, rows_[r].costs[node] / (rows_[r].slack + 1));
    }
    parts.push_back(part);
  }
  std::vector<size_t> order(parties_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t p) { return parts[p]; });
  return order;
}

bool SubsetSearch::costs_nothing(const PartyRows& party, size_t node) const {
  for (size_t r = party.first; r < party.last; r++) {
    if (rows_[r].costs[node] != 0) return false;
  }
  return true;
}

// Lower nodes that could be left out at no lower cost than this one. A subset without them is not
// the lowest, because one of them could stay instead.
uint64_t SubsetSearch::preceding(size_t node) const {
  if (std::ranges::any_of(parties_, [&](const PartyRows& party) { return costs_nothing(party, node); })) {
    return lowest_[node];
  }
  uint64_t mask = 0;
  for (size_t other = 0; other < node; other++) {
    bool is_no_dearer =
        std::ranges::all_of(rows_, [&](const Row& row) { return row.costs[node] <= row.costs[other]; });
    if (is_no_dearer) mask |= uint64_t{1} << nodes_[other];
  }
  return mask;
}

void SubsetSearch::run(int size, const Accept& accept) {
  int count = static_cast<int>(nodes_.size());
  if (size > count) return;
  size_ = size;
  accept_ = &accept;
  slacks_.resize(slacks_width_ * static_cast<size_t>(count - size + 1));
  slacks_now_ = 0;
  for (const PartyRows& party : parties_) {
    for (size_t r = party.first; r < party.last; r++) {
      if (rows_[r].slack < 0) return;  // not even all nodes meet it
      slacks_[party.slack + r - party.first] = rows_[r].slack;
    }
  }
  descend(count, count - size);
}

// True if `out` of the first `left` nodes could still be left out, by a quick estimate.
bool SubsetSearch::can_leave_out(int left, int out) const {
  const double* slack = slacks_.data() + slacks_now_;
  if (parties_.size() == 1) {
    for (size_t r = 0; r < rows_.size(); r++) {
      if (cheapest_[r].cost(left, out) > slack[r]) return false;
    }
    return true;
  }
  int most = 0;
  for (const PartyRows& party : parties_) {
    int of_party = left;
    for (size_t r = party.first; r < party.last; r++) {
      of_party = std::min(of_party, cheapest_[r].most(left, slack[party.slack + r - party.first]));
    }
    most += of_party;
    if (most >= out) return true;
  }
  return false;
}

// The least distance of any completion.
uint64_t SubsetSearch::least_distance(int left, int missing) const {
  std::vector<uint64_t> added;
  for (int i = 0; i < left; i++) {
    uint64_t sum = best_.between(nodes_[i], nodes_[i]);
    for_each_node(kept_,
                  [&](int kept) { sum += best_.between(nodes_[i], kept) + best_.between(kept, nodes_[i]); });
    added.push_back(sum);
  }
  std::ranges::sort(added);
  return std::accumulate(added.begin(), added.begin() + missing, kept_distance_);
}

// True if no completion can beat what was found.
bool SubsetSearch::is_beaten(int left, int out) {
  if (best_.of_size(size_) == 0) return false;
  if (!best_.by_distance()) return (kept_ | lowest_[left - out]) >= best_.of_size(size_);
  budget_ -= left * (count_ones(kept_) + 4) / 16;
  // An equally close, lower mask may still come.
  return least_distance(left, left - out) > best_.distance_of_size(size_);
}

// Decides node left-1. Leaves it out first, so that lower masks come earlier. Returns true to go
// on.
bool SubsetSearch::descend(int left, int out) {
  if (out == 0) {
    complete(left);
    return true;
  }
  budget_ -= step_;
  if (budget_ < 0) return false;
  if (out > left - count_ones(required_ & lowest_[left]) || is_beaten(left, out)) return true;
  if (!can_leave_out(left, out)) return true;
  if (!leave_out(left - 1, out)) return false;
  if (out == left) return true;  // every node left must be left out, so nothing can be kept
  return keep(left - 1, out);
}

// True if the party's twin has the same slack: it is tried instead.
bool SubsetSearch::can_stand_in(const PartyRows& party) const {
  if (party.twin < 0) return false;
  const double* slack = slacks_.data() + slacks_now_;
  size_t rows = party.last - party.first;
  return std::equal(slack + party.slack, slack + party.slack + rows,
                    slack + parties_[static_cast<size_t>(party.twin)].slack);
}

// Continues with the slacks that remain after a party leaves out a node; false: it cannot.
bool SubsetSearch::pay(const PartyRows& party, size_t node) {
  const double* slack = slacks_.data() + slacks_now_;
  double* rest = slacks_.data() + slacks_now_ + slacks_width_;
  std::copy(slack, slack + slacks_width_, rest);
  for (size_t r = party.first; r < party.last; r++) {
    double& of_row = rest[party.slack + r - party.first];
    of_row -= rows_[r].costs[node];
    if (of_row < 0) return false;
  }
  slacks_now_ += slacks_width_;
  return true;
}

bool SubsetSearch::leave_out(int node, int out) {
  size_t at = static_cast<size_t>(node);
  if ((required_ >> nodes_[at] & 1) != 0) return true;
  for (size_t p : by_cost_[at]) {
    if (can_stand_in(parties_[p]) || !pay(parties_[p], at)) continue;
    bool goes_on = descend(node, out - 1);
    slacks_now_ -= slacks_width_;
    // If leaving the node out costs nothing, other parties need not be tried.
    if (!goes_on || costs_nothing(parties_[p], at)) return goes_on;
  }
  return true;
}

bool SubsetSearch::keep(int node, int out) {
  uint64_t distance_before = kept_distance_;
  uint64_t required_before = required_;
  int id = nodes_[static_cast<size_t>(node)];
  if (best_.by_distance()) {
    kept_distance_ += best_.between(id, id);
    for_each_node(kept_,
                  [&](int other) { kept_distance_ += best_.between(id, other) + best_.between(other, id); });
  } else if (!*accept_) {
    required_ |= preceding_[static_cast<size_t>(node)];
  }
  kept_ |= uint64_t{1} << id;
  bool goes_on = descend(node, out);
  kept_ &= ~(uint64_t{1} << id);
  required_ = required_before;
  kept_distance_ = distance_before;
  return goes_on;
}

void SubsetSearch::complete(int left) {
  uint64_t mask = kept_ | lowest_[left];
  if (*accept_ && !(*accept_)(mask)) return;
  if (best_.by_distance()) budget_ -= size_ * size_ / 16;
  best_.consider(mask);
}

}  // namespace numalign
