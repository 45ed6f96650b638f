#include "core/core_sizes.h"

#include <cstdint>

#include "core/small_words.h"

namespace numalign {
namespace {

// Adds `by` to each number of a set, a bit for each number.
void add_shifted(SmallWords& set, size_t by) {
  const size_t words = by / 64;
  const size_t bits = by % 64;
  for (size_t i = set.size(); i-- > words;) {
    uint64_t shifted = set[i - words] << bits;
    if (bits > 0 && i > words) shifted |= set[i - words - 1] >> (64 - bits);
    set[i] |= shifted;
  }
}

}  // namespace

std::vector<int> CoreSizes::nested(bool& are_all) const {
  std::vector<int> nested;
  are_all = true;
  for (int size = 1; size <= largest(); size++) {
    if (count(size) == 0) continue;
    if (nested.empty() || size % nested.back() == 0) {
      nested.push_back(size);
    } else {
      are_all = false;
    }
  }
  return nested;
}

bool CoreSizes::can_make(int amount) const {
  if (amount > total_) return false;
  // The other cores add up exactly if these do.
  amount = std::min(amount, total_ - amount);
  SmallWords more;
  uint64_t few = 1;  // for amounts below 64
  if (amount >= 64) (more = SmallWords(static_cast<size_t>(amount) / 64 + 1))[0] = 1;
  for (int size = 1; size <= std::min(largest(), amount); size++) {
    // In steps of 1, 2, 4... cores, and the rest.
    for (int left = std::min(count(size), amount / size), step = 1; left > 0; left -= step, step *= 2) {
      step = std::min(step, left);
      if (amount >= 64) {
        add_shifted(more, static_cast<size_t>(size * step));
      } else {
        few |= few << (size * step);
      }
    }
  }
  return ((amount < 64 ? few : more.back()) >> (amount % 64) & 1) != 0;
}

bool CoreSizes::can_serve(std::span<const CoreClaim> claims, int& budget, const CoreSizes& others) const {
  if (claims.empty()) return true;
  if (claims.size() == 1) return can_make(claims[0].count);
  CoreSizes left = *this;
  if (claims[0].returns) {
    if (!can_make(claims[0].count)) return false;
    left.add(others);
    return left.serve(claims.subspan(1), budget);
  }
  return left.make_first(largest(), claims[0].count, claims.subspan(1), others, budget);
}

bool CoreSizes::can_serve(std::span<const CoreClaim> claims, int& budget) const {
  return can_serve(claims, budget, CoreSizes());
}

bool CoreSizes::serve(std::span<const CoreClaim> claims, int& budget) {
  while (!claims.empty() && (claims[0].returns || claims.size() == 1)) {
    if (!can_make(claims[0].count)) return false;
    claims = claims.subspan(1);
  }
  if (claims.empty()) return true;
  if (most_at_once(claims, [](int count) { return count; }) > total_ || !can_make(claims[0].count))
    return false;
  return make_first(largest(), claims[0].count, claims.subspan(1), {}, budget);
}

// Gives `left` CPUs in cores up to `size` to the container before `claims`, in each way.
bool CoreSizes::make_first(int size, int left, std::span<const CoreClaim> claims, const CoreSizes& others,
                           int& budget) {
  if (left == 0) {
    add(others);
    const bool is_served = serve(claims, budget);
    add(others, -1);
    return is_served;
  }
  while (size > 0 && (count(size) == 0 || size > left)) size--;
  if (size <= 0) return false;
  if (--budget < 0) return true;
  // A larger core is worth no more than the smaller ones that add up to it: if they always do, it goes first.
  const int most = std::min(count(size), left / size);
  const int least = nest_below(size) ? most : 0;
  for (int cores = most; cores >= least; cores--) {
    add(size, -cores);
    const bool is_served = make_first(size - 1, left - cores * size, claims, others, budget);
    add(size, cores);
    if (is_served) return true;
  }
  return false;
}

bool CoreSizes::nest_below(int size) const {
  int above = size;
  for (int less = size - 1; less > 0; less--) {
    if (count(less) == 0) continue;
    if (above % less != 0) return false;
    above = less;
  }
  return true;
}

}  // namespace numalign
