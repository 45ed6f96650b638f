#include "core/cpu_use.h"

#include <gtest/gtest.h>

namespace numalign {
namespace {

TEST(CpuUse, GivesEveryThreadACpuOfItsOwnWhileThereAreSome) {
  CpuUse use;
  const CpuSet cpus{2, 3, 5};
  CpuSet given;
  for (int i = 0; i < 3; i++) {
    const int cpu = use.least_used(cpus);
    use.add(CpuSet{cpu}, true);
    given.insert(cpu);
  }
  EXPECT_EQ(given, cpus);
  EXPECT_EQ(use.least_used(cpus), 2) << "then from the lowest on again";
}

TEST(CpuUse, PrefersACpuWithHelpersToOneThatRunsJavaScript) {
  CpuUse use;
  use.add(CpuSet{0}, true);
  for (int i = 0; i < 5; i++) use.add(CpuSet{1}, false);
  EXPECT_EQ(use.least_used(CpuSet{0, 1}), 1);
  use.add(CpuSet{1}, true);
  EXPECT_EQ(use.least_used(CpuSet{0, 1}), 0) << "now both do, and the first has fewer threads";
}

TEST(CpuUse, DoesNotCountThreadsThatMayRunOnSeveral) {
  CpuUse use;
  use.add(CpuSet{0, 1}, true);
  use.add(CpuSet{}, true);
  EXPECT_EQ(use.least_used(CpuSet{0, 1}), 0);
}

}  // namespace
}  // namespace numalign
