// Random UUIDs of the kernel's generator.
#include "platform/process/random_uuid.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace numalign {
namespace {

TEST(RandomUuid, IsOfVersion4AndDiffersEachTime) {
  const std::regex version4("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> uuids;
  for (int i = 0; i < 100; i++) uuids.insert(random_uuid().value());
  for (const std::string& uuid : uuids) EXPECT_TRUE(std::regex_match(uuid, version4)) << uuid;
  EXPECT_EQ(uuids.size(), 100u);
}

}  // namespace
}  // namespace numalign
