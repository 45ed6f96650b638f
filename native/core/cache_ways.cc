#include "core/cache_ways.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace numalign {
namespace {

constexpr int kMostWays = 32;

WayMask run_of(int first, int length) { return static_cast<WayMask>(((uint64_t{1} << length) - 1) << first); }

std::vector<WayMask> runs_in(WayMask mask) {
  std::vector<WayMask> runs;
  while (mask != 0) {
    int first = std::countr_zero(mask);
    WayMask run = run_of(first, std::countr_one(mask >> first));
    runs.push_back(run);
    mask &= ~run;
  }
  return runs;
}

bool is_contiguous(WayMask mask) { return mask != 0 && runs_in(mask).size() == 1; }

// The upper end of a run.
WayMask top_of(WayMask run, int ways) { return run_of(kMostWays - std::countl_zero(run) - ways, ways); }

// States without a solution: the number of requests placed, then the widths of the free runs.
using DeadEnds = std::set<std::vector<int>>;

// Puts requests into runs of free ways. `left`: the widths, the widest first. `masks` gets the
// result.
bool pack(WayMask free, const std::vector<int>& left, size_t at, std::vector<WayMask>& masks,
          DeadEnds& dead_ends) {
  if (at == left.size()) return true;
  if (std::accumulate(left.begin() + static_cast<ptrdiff_t>(at), left.end(), 0) > std::popcount(free)) {
    return false;
  }
  // The tightest run first. Of equally wide runs only the upper is tried; the others would give the
  // same.
  std::vector<WayMask> runs = runs_in(free);
  std::ranges::sort(runs, [](WayMask a, WayMask b) {
    return std::pair(std::popcount(a), ~a) < std::pair(std::popcount(b), ~b);
  });
  std::vector<int> here{static_cast<int>(at)};
  for (WayMask run : runs) here.push_back(std::popcount(run));
  if (dead_ends.contains(here)) return false;
  int width = 0;
  for (WayMask run : runs) {
    if (std::popcount(run) == width || std::popcount(run) < left[at]) continue;
    width = std::popcount(run);
    masks[at] = top_of(run, left[at]);
    if (pack(free & ~masks[at], left, at + 1, masks, dead_ends)) return true;
  }
  dead_ends.insert(std::move(here));
  return false;
}

class Planner {
 public:
  explicit Planner(const CacheWaysQuestion& question)
      : question_(question), masks_(question.requests.size()) {
    for (const WayRequest& request : question.requests) room_ |= request.current;
    room_ = (question.base | ((room_ | question.released) & ~question.foreign)) & question.all;
    for (size_t i = 0; i < masks_.size(); i++) {
      const WayRequest& request = question.requests[i];
      bool keeps = is_contiguous(request.current) && std::popcount(request.current) == width(request) &&
                   (request.current & ~(question.all & ~question.foreign & ~kept_)) == 0;
      // The kept ways must leave something to the default group.
      if (!keeps || !place(kept_ | request.current, {})) continue;
      masks_[i] = request.current;
      kept_ |= request.current;
    }
  }

  CacheWays plan() {
    std::vector<size_t> placed;
    for (size_t i = 0; i < masks_.size(); i++) {
      if (masks_[i] != 0) continue;
      placed.push_back(i);
      if (!place(kept_, widths(placed))) placed.pop_back();
    }
    std::vector<int> needed = widths(placed);
    std::optional<Placement> best = place(kept_, needed);
    CacheWays answer{masks_, best ? best->rest : 0, 0};
    // The order of widths().
    std::ranges::stable_sort(placed, std::greater(), [&](size_t i) { return width(question_.requests[i]); });
    for (size_t i = 0; i < placed.size(); i++) answer.masks[placed[i]] = best->masks[i];
    WayMask taken = std::accumulate(answer.masks.begin(), answer.masks.end(), WayMask{0}, std::bit_or());
    for (int more = question_.min_bits; more <= kMostWays && place(taken, {more}); more++) answer.most = more;
    return answer;
  }

 private:
  struct Placement {
    WayMask rest;
    std::vector<WayMask> masks;
  };

  int width(const WayRequest& request) const { return std::max(request.ways, question_.min_bits); }

  std::vector<int> widths(const std::vector<size_t>& requests) const {
    std::vector<int> widths;
    for (size_t i : requests) widths.push_back(width(question_.requests[i]));
    std::ranges::sort(widths, std::greater());
    return widths;
  }

  // Places requests outside the taken ways, and outside shareable ones if possible.
  std::optional<Placement> place(WayMask taken, const std::vector<int>& widths) const {
    WayMask free = question_.all & ~question_.foreign & ~taken;
    std::optional<Placement> best = place_in(free & ~question_.shareable, taken, widths);
    return best || question_.shareable == 0 ? best : place_in(free, taken, widths);
  }

  // Tries every run that could stay for the default group, the widest first, then the lowest.
  std::optional<Placement> place_in(WayMask free, WayMask taken, const std::vector<int>& widths) const {
    Placement placement{0, std::vector<WayMask>(widths.size())};
    DeadEnds dead_ends;
    for (int length = kMostWays; length >= question_.min_bits; length--) {
      for (int first = 0; first + length <= kMostWays; first++) {
        placement.rest = run_of(first, length);
        if ((placement.rest & ~(room_ & ~taken)) != 0) continue;
        // This many of its ways stay in `base`, which only grows by what is given back.
        if (std::popcount(widest_run(placement.rest & question_.base)) < question_.min_bits) continue;
        if (pack(free & ~placement.rest, widths, 0, placement.masks, dead_ends)) return placement;
      }
    }
    return std::nullopt;
  }

  const CacheWaysQuestion& question_;
  std::vector<WayMask> masks_;
  WayMask room_ = 0;  // what the default group could have
  WayMask kept_ = 0;
};

}  // namespace

WayMask widest_run(WayMask mask) {
  WayMask widest = 0;
  for (WayMask run : runs_in(mask)) {
    if (std::popcount(run) > std::popcount(widest)) widest = run;
  }
  return widest;
}

CacheWays cache_ways(const CacheWaysQuestion& question) {
  assert(question.min_bits >= 1 && question.min_bits <= kMostWays);
  return Planner(question).plan();
}

}  // namespace numalign
