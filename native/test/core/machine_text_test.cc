#include "core/machine_text.h"

#include <gtest/gtest.h>

namespace numalign {
namespace {

const std::string kMark = "boot 1\ncpu/online 0-3";

MachineParts machine() {
  return {{{0, 0, 0, 0, 2, 0, 1}, {1, 0, 0, 0, 2, 0, 1}, {8, 8, 1, 8, 8, 3, 0}}, NodeSet{0, 3}};
}

TEST(MachineText, SaysWhatItWasMadeOf) {
  EXPECT_EQ(parse_machine_text(machine_text(kMark, machine()), kMark), machine());
  EXPECT_EQ(parse_machine_text(machine_text(kMark, {}), kMark), MachineParts());
}

TEST(MachineText, IsOfTheMachineWithItsMarkAlone) {
  const std::string text = machine_text(kMark, machine());
  for (const char* other : {"", "boot 1", "boot 2\ncpu/online 0-3", "boot 1\ncpu/online 0-31", "boot 1\n"})
    EXPECT_FALSE(parse_machine_text(text, other)) << other;
}

TEST(MachineText, IsNoneIfOneCharacterIsAnotherOrMissing) {
  const std::string text = machine_text(kMark, machine());
  for (size_t i = 0; i < text.size(); i++) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(parse_machine_text(damaged, kMark)) << i;
    EXPECT_FALSE(parse_machine_text(text.substr(0, i), kMark)) << i;
  }
  EXPECT_FALSE(parse_machine_text(text + "9", kMark));
}

}  // namespace
}  // namespace numalign
