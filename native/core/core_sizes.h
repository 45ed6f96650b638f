// CoreSizes: how many cores there are of each size, and the amounts of CPUs that whole cores add up
// to. Plain value.
#pragma once

#include <vector>

namespace numalign {

class CoreSizes {
 public:
  void add(int size, int cores = 1) {
    if (static_cast<size_t>(size) >= cores_.size()) cores_.resize(static_cast<size_t>(size) + 1);
    cores_[static_cast<size_t>(size)] += cores;
    total_ += size * cores;
  }
  void remove(int size) { add(size, -1); }
  void add(const CoreSizes& other) {
    for (size_t size = 1; size < other.cores_.size(); size++) add(static_cast<int>(size), other.cores_[size]);
  }

  int count(int size) const {
    return size < static_cast<int>(cores_.size()) ? cores_[static_cast<size_t>(size)] : 0;
  }
  // No size is greater.
  int largest() const { return static_cast<int>(cores_.size()) - 1; }

  // A subset sum over the few different sizes: reachable[n] is how many cores of the current size
  // reach n, or -1.
  bool can_make(int amount) const {
    if (amount > total_) return false;
    std::vector<int> reachable(static_cast<size_t>(amount) + 1, -1);
    reachable[0] = 0;
    for (size_t size = 1; size < cores_.size(); size++) {
      if (cores_[size] == 0) continue;
      for (size_t n = 0; n < reachable.size(); n++) {
        if (reachable[n] >= 0) {
          reachable[n] = 0;
        } else if (n >= size && reachable[n - size] >= 0 && reachable[n - size] < cores_[size]) {
          reachable[n] = reachable[n - size] + 1;
        }
      }
    }
    return reachable.back() >= 0;
  }

 private:
  std::vector<int> cores_;
  int total_ = 0;
};

}  // namespace numalign
