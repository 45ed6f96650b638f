// The wire: words and amounts that ask the core from JavaScript. lib/base/wire.ts writes the parts of
// a question one after another, and the functions below read them in the same order, so that neither
// side counts positions. A list follows its length. WireWriter is for the way back. Plain values; one
// object is not safe for concurrent use.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cpu_hints.h"
#include "core/device_hints.h"
#include "core/hint_family.h"
#include "core/memory_hints.h"
#include "core/near_fit.h"

namespace numalign {

// Borrows the words and amounts. After the first failure, everything reads as zero or empty. Use what
// was read only if failure() is null.
class WireReader {
 public:
  WireReader(std::span<const uint32_t> words, std::span<const double> amounts)
      : words_(words), amounts_(amounts) {}

  // Why the words are no such question; null if they are, as far as they were read.
  const char* failure() const { return failure_; }
  // Fails with a literal unless `is_met`.
  void require(bool is_met, const char* why) {
    if (!is_met) fail(why);
  }

  uint32_t word() {
    std::span<const uint32_t> words = take(words_, 1);
    return words.empty() ? 0 : words.front();
  }
  int number() { return static_cast<int>(word()); }
  bool flag() { return word() != 0; }
  std::span<const uint32_t> list() { return take(words_, word()); }
  std::span<const double> amounts() { return take(amounts_, word()); }
  CpuSet cpus();
  int node_count();  // 1 to 64
  // Of the first `nodes` nodes. An empty list is an empty mask.
  NodeMask mask(int nodes);
  NodeMask mask_of_words(uint32_t low, uint32_t high, int nodes);
  std::vector<CoreClaim> core_claims();
  // In place: a family is large. The same as what JavaScript keeps of it.
  void family(HintFamily& family) { require(family.read(list()), "these words are not a family of hints"); }

 private:
  void fail(const char* why);
  template <class Item>
  std::span<const Item> take(std::span<const Item>& left, size_t count) {
    if (count > left.size()) {
      fail("the wire has fewer words");
      return {};
    }
    std::span<const Item> taken = left.first(count);
    left = left.subspan(count);
    return taken;
  }

  std::span<const uint32_t> words_;
  std::span<const double> amounts_;
  const char* failure_ = nullptr;
};

// The arguments of near_fit().
struct BestFitQuestion {
  CpuSet available;
  int count = 0;
  NearOptions near;
  BestFitOptions options;
};

// Each meets the REQUIRES of the function that it is for, unless the reader has failed.
BestFitQuestion read_best_fit(WireReader& wire);
CpuHintsRequest read_cpu_hints(WireReader& wire, const Topology& topology);
MemoryHintsRequest read_memory_hints(WireReader& wire, int nodes);
DeviceHintsRequest read_device_hints(WireReader& wire, int nodes);

// Appends to words, which it borrows.
class WireWriter {
 public:
  explicit WireWriter(std::vector<uint32_t>& words) : words_(words) {}

  void word(uint32_t word) { words_.push_back(word); }
  void mask(NodeMask mask);
  void cpus(const CpuSet& cpus);
  void family(const HintFamily& family);

 private:
  std::vector<uint32_t>& words_;
};

}  // namespace numalign
