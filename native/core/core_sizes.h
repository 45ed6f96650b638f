// CoreSizes: how many cores there are of each size, the amounts of CPUs that whole cores add up to,
// and whether they can be dealt out to containers. Plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace numalign {

// What a container of a pod wants, in whole cores.
struct CoreClaim {
  int count;
  bool returns;  // an init container, which leaves its cores to all later ones

  friend bool operator==(const CoreClaim&, const CoreClaim&) = default;
};

// The most CPUs that containers have at one time, where each counts as `amount` of its claim.
template <class Amount>
int most_at_once(std::span<const CoreClaim> claims, Amount&& amount) {
  int kept = 0;
  int most = 0;
  for (const CoreClaim& claim : claims) {
    most = std::max(most, kept + amount(claim.count));
    if (!claim.returns) kept += amount(claim.count);
  }
  return most;
}

class CoreSizes {
 public:
  // The steps of serve() after which its answer may be wrong: about 5 ms.
  static constexpr int kBudget = 100'000;

  void add(int size, int cores = 1) {
    if (static_cast<size_t>(size) >= cores_.size()) cores_.resize(static_cast<size_t>(size) + 1);
    cores_[static_cast<size_t>(size)] += cores;
    total_ += size * cores;
  }
  void add(const CoreSizes& other, int times = 1) {
    if (cores_.size() < other.cores_.size()) cores_.resize(other.cores_.size());
    for (size_t size = 1; size < other.cores_.size(); size++) cores_[size] += times * other.cores_[size];
    total_ += times * other.total_;
  }

  int count(int size) const { return size <= largest() ? cores_[static_cast<size_t>(size)] : 0; }
  // No size is greater.
  int largest() const { return static_cast<int>(cores_.size()) - 1; }
  int total() const { return total_; }
  // The sizes that divide the next one, from the least size on. `are_all`: no core has another size.
  std::vector<int> nested(bool& are_all) const;

  bool can_make(int amount) const;
  // True if containers can have their claims in turn, each in whole cores; `others`: cores that all but
  // the first can have too. Exact within `budget` steps; after them, true where the claims' amounts fit.
  bool can_serve(std::span<const CoreClaim> claims, int& budget, const CoreSizes& others) const;
  bool can_serve(std::span<const CoreClaim> claims, int& budget) const;

  // libc++ 16 compares no vectors in three ways.
  bool operator<(const CoreSizes& other) const { return cores_ < other.cores_; }

 private:
  bool serve(std::span<const CoreClaim> claims, int& budget);
  bool make_first(int size, int left, std::span<const CoreClaim> claims, const CoreSizes& others,
                  int& budget);
  bool nest_below(int size) const;

  int total_ = 0;
  std::vector<int> cores_;
};

}  // namespace numalign
