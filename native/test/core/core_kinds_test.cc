#include "core/core_kinds.h"

#include <gtest/gtest.h>

#include <string>

namespace numalign {
namespace {

// Cores of one thread on one package.
std::vector<CpuInfo> cores(int count) {
  std::vector<CpuInfo> cpus;
  for (int cpu = 0; cpu < count; cpu++) cpus.push_back({cpu, cpu, 0, 0, 0, 0});
  return cpus;
}

CoreFacts facts(CpuSet cpus, std::initializer_list<std::pair<const char*, const char*>> infos) {
  CoreFacts facts{.cpus = std::move(cpus)};
  for (auto [name, value] : infos) facts.note(name, value);
  return facts;
}

std::string kinds(const std::vector<CoreFacts>& facts, int count) {
  std::string text;
  for (const CpuInfo& cpu : with_kinds(cores(count), facts)) text += std::to_string(cpu.kind);
  return text;
}

TEST(CoreKinds, AreRankedByTheTypesOfIntel) {
  CoreFacts atom = facts({2, 3}, {{"CoreType", "IntelAtom"}, {"FrequencyMaxMHz", "5000"}});
  CoreFacts core = facts({0, 1}, {{"CoreType", "IntelCore"}, {"FrequencyMaxMHz", "4000"}});
  EXPECT_EQ(kinds({atom, core}, 4), "1100");
  EXPECT_EQ(kinds({core, atom}, 4), "1100");
  CoreFacts low_power = facts({4}, {{"CoreType", "IntelLowPower"}, {"FrequencyMaxMHz", "6000"}});
  EXPECT_EQ(kinds({low_power, core, atom}, 5), "22110");
}

TEST(CoreKinds, AreRankedByLinuxCapacityBeforeAllElse) {
  CoreFacts big = facts({0}, {{"LinuxCapacity", "1024"}, {"FrequencyMaxMHz", "2000"}});
  CoreFacts middle = facts({1}, {{"LinuxCapacity", "870"}, {"FrequencyMaxMHz", "3000"}});
  CoreFacts little = facts({2}, {{"LinuxCapacity", "250"}, {"FrequencyMaxMHz", "4000"}});
  EXPECT_EQ(kinds({little, big, middle}, 3), "210");
}

TEST(CoreKinds, OfOneTypeAreRankedByFrequency) {
  CoreFacts fast = facts({0}, {{"CoreType", "IntelAtom"}, {"FrequencyMaxMHz", "3800"}});
  CoreFacts slow = facts({1}, {{"CoreType", "IntelAtom"}, {"FrequencyMaxMHz", "2500"}});
  EXPECT_EQ(kinds({fast, slow}, 2), "10");
}

TEST(CoreKinds, AreOneKindIfTheyDifferByLessThanATenth) {
  auto of = [](CpuSet cpus, const char* mhz) { return facts(std::move(cpus), {{"FrequencyMaxMHz", mhz}}); };
  EXPECT_EQ(kinds({of({0}, "5000"), of({1}, "4501")}, 2), "00");
  EXPECT_EQ(kinds({of({0}, "5000"), of({1}, "4500")}, 2), "10");
  // A chain of small differences ends at a tenth below its fastest.
  EXPECT_EQ(kinds({of({0}, "5000"), of({1}, "4600"), of({2}, "4200")}, 3), "110");
}

TEST(CoreKinds, IgnoreBaseFrequencies) {
  CoreFacts a = facts({0}, {{"FrequencyMaxMHz", "3900"}, {"FrequencyBaseMHz", "2700"}});
  CoreFacts b = facts({1}, {{"FrequencyMaxMHz", "3900"}, {"FrequencyBaseMHz", "2100"}});
  EXPECT_EQ(kinds({a, b}, 2), "00");
}

TEST(CoreKinds, AreOneKindUnlessEachCpuIsInExactlyOneOfThem) {
  CoreFacts fast = facts({0, 1}, {{"LinuxCapacity", "1024"}});
  CoreFacts slow = facts({2}, {{"LinuxCapacity", "300"}});
  EXPECT_EQ(kinds({fast, slow}, 3), "110");
  EXPECT_EQ(kinds({fast, slow}, 4), "0000");
  slow.cpus.insert(1);
  EXPECT_EQ(kinds({fast, slow}, 3), "000");
  EXPECT_EQ(kinds({fast}, 2), "00");
}

TEST(CoreKinds, NeverDivideACore) {
  std::vector<CpuInfo> cpus = cores(4);
  cpus[1].core = 0;
  CoreFacts fast = facts({0, 2}, {{"LinuxCapacity", "1024"}});
  CoreFacts slow = facts({1, 3}, {{"LinuxCapacity", "300"}});
  std::vector<CpuInfo> found = with_kinds(cpus, std::vector{fast, slow});
  EXPECT_EQ(found[1].kind, found[0].kind);
  EXPECT_EQ(found[3].kind, 0);
}

TEST(CoreKinds, TakeNoNonsenseForANumber) {
  CoreFacts odd = facts({0}, {{"LinuxCapacity", "fast"}, {"FrequencyMaxMHz", "-3"}, {"CoreType", "?"}});
  EXPECT_EQ(odd.capacity + odd.max_mhz + odd.type, 0);
  odd.note("LinuxCapacity", "99999999999999999999");
  EXPECT_EQ(odd.capacity, 0);
}

}  // namespace
}  // namespace numalign
