#include "core/device_hints.h"

#include <gtest/gtest.h>

#include "support/hint_laws.h"

namespace numalign {
namespace {

Device free_near(uint64_t mask) { return {NodeMask(mask), true, false}; }
Device taken_near(uint64_t mask) { return {NodeMask(mask), false, false}; }
Device left_near(uint64_t mask) { return {NodeMask(mask), false, true}; }

using test::Masks;
using test::offered;

TEST(DeviceHints, CountAvailableDevicesAndPreferAsIfAllWere) {
  HintFamily family = device_hints({2, 2, {free_near(1), taken_near(1), free_near(2)}});
  EXPECT_EQ(offered(family), (Masks{0b11}));
  EXPECT_FALSE(family.prefers(NodeMask(0b11))) << "node 0 has two devices";
  EXPECT_TRUE(device_hints({2, 2, {free_near(1), free_near(2)}}).prefers(NodeMask(0b11)));
}

TEST(DeviceHints, CountADeviceNearSeveralNodesAtEachButOnce) {
  HintFamily family = device_hints({3, 2, {free_near(0b011), free_near(0b100)}});
  EXPECT_EQ(offered(family), (Masks{0b101, 0b110, 0b111}));
  EXPECT_TRUE(family.prefers(NodeMask(0b101)) && family.prefers(NodeMask(0b110)));
  EXPECT_FALSE(family.prefers(NodeMask(0b111)));
}

TEST(DeviceHints, TouchEveryDeviceThatIsLeftBehind) {
  std::vector<Device> devices{free_near(0b01), left_near(0b10)};
  EXPECT_EQ(offered(device_hints({2, 1, devices})), (Masks{0b10, 0b11}));
  devices.push_back(left_near(0b11));
  EXPECT_EQ(offered(device_hints({2, 1, devices})), (Masks{0b10, 0b11}));
  devices.push_back({NodeMask(), false, true});
  EXPECT_EQ(offered(device_hints({2, 1, devices})), (Masks{0b10, 0b11})) << "it reports no nodes";
}

TEST(DeviceHints, NeverCountDevicesWithoutNodes) {
  EXPECT_EQ(device_hints({2, 1, {free_near(0)}}), (HintFamily{2, false, false, HintList{}}));
  EXPECT_EQ(device_hints({2, 1, {}}), (HintFamily{2, false, false, HintList{}}));
}

TEST(DeviceHints, AreOnlyOfNodesThatSomeDeviceIsNearWhereAsked) {
  std::vector<Device> devices{free_near(0b0001), taken_near(0b0100), free_near(0)};
  EXPECT_EQ(offered(device_hints({4, 1, devices})).size(), 8);
  HintFamily family = device_hints({4, 1, devices, true});
  EXPECT_EQ(offered(family), (Masks{0b0001, 0b0101}));
  EXPECT_TRUE(family.prefers(NodeMask(0b0001)));
  EXPECT_FALSE(family.prefers(NodeMask(0b0101)));
  // Counted at each of several nodes, and on a machine of which masks are not enumerated.
  devices.push_back(free_near(0b1100));
  EXPECT_EQ(offered(device_hints({4, 2, devices, true})), (Masks{0b0101, 0b1001, 0b1101}));
  EXPECT_EQ(offered(device_hints({4, 1, {free_near(0b0001), taken_near(0b0100)}, true}, 0)),
            (Masks{0b0001, 0b0101}));
  EXPECT_EQ(device_hints({2, 1, {free_near(0)}, true}), (HintFamily{2, false, false, HintList{}}));
}

TEST(DeviceHints, AreApproximateOnlyOnLargeMachinesWithDevicesNearSeveralNodes) {
  EXPECT_FALSE(device_hints({16, 1, {free_near(0b11)}}).approximate);
  EXPECT_FALSE(device_hints({17, 1, {free_near(0b10)}}).approximate);
  HintFamily family = device_hints({17, 1, {free_near(0b11)}});
  EXPECT_TRUE(family.approximate);
  EXPECT_TRUE(family.offers(NodeMask(0b01)));
  EXPECT_EQ(HintFamily::from_words(family.to_words()), family);
}

}  // namespace
}  // namespace numalign
