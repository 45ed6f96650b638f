#include "core/cpu_tables.h"

#include <gtest/gtest.h>

namespace numalign {
namespace {

// CPU 1 is offline.
constexpr const char* kInterrupts =
    "           CPU0       CPU2\n"
    " 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
    " 28:       1000        200 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config\n"
    "NMI:          0          3   Non-maskable interrupts\n"
    "LOC:         40         50   Local timer interrupts\n"
    "ERR:          7\n"
    "MIS:          9\n";

TEST(CpuTables, SumsUpInterruptsByCpuAndThoseOfDevicesApart) {
  auto counts = sum_interrupts(kInterrupts, CpuSet{0, 1, 2});
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts[0].all, 1041u);
  EXPECT_EQ(counts[0].numbered, 1001u);
  EXPECT_EQ(counts[2].all, 253u);
  EXPECT_EQ(counts[2].numbered, 200u);
}

TEST(CpuTables, TellsOnlyOfCpusThatAreAskedFor) {
  EXPECT_EQ(sum_interrupts(kInterrupts, CpuSet{2}).size(), 1u);
  EXPECT_TRUE(sum_interrupts(kInterrupts, CpuSet{7}).empty());
}

TEST(CpuTables, ReadsSoftirqs) {
  auto counts = sum_interrupts(
      "                    CPU0       CPU1       \n          HI:          2          0\n       TIMER:     "
      "719350     "
      "826395\n",
      CpuSet{0, 1});
  EXPECT_EQ(counts[0].all, 719352u);
  EXPECT_EQ(counts[0].numbered, 0u);
  EXPECT_EQ(counts[1].all, 826395u);
}

TEST(CpuTables, TellsNothingOfATextWithoutColumns) {
  for (const char* text : {"", "\n", "CPU", "CPU0 x\n 1: 2 3\n", "CPU99999999\n 1: 2\n", "24: 1 0\n"}) {
    EXPECT_TRUE(sum_interrupts(text, CpuSet{0, 1}).empty()) << text;
  }
}

TEST(CpuTables, ReadsTheTimesOfCpus) {
  auto ticks = read_cpu_ticks(
      "cpu  10 0 10 0 0 0 0 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu2 10 0 0 70 0 0 0 1 0 0\ncpu3 1 2 3\nintr 5 "
      "cpu0 "
      "1\ncpu4 1 1 1 1 1 1 1 1\n",
      CpuSet{0, 1, 2, 3, 4});
  ASSERT_EQ(ticks.size(), 2u);
  EXPECT_EQ(ticks[0].busy, 1u + 2 + 3 + 6 + 7);
  EXPECT_EQ(ticks[0].idle, 4u + 5);
  EXPECT_EQ(ticks[0].steal, 8u);
  EXPECT_EQ(ticks[2].steal, 1u);
}

}  // namespace
}  // namespace numalign
