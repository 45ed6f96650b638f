// Sums over all supersets of each mask, and back.
#pragma once

#include <cstddef>
#include <vector>

namespace numalign {

// Replaces each mask's count by the sum over all masks that contain it; `back` undoes that. Counts
// wrap around; undoing is exact if the true numbers fit in Count.
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

}  // namespace numalign
