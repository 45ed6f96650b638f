#include "platform/files/extended_attribute.h"

#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <string>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

TEST(ExtendedAttribute, IsReadWhole) {
  TemporaryFolder folder;
  if (setxattr(folder.path().c_str(), "user.delegate", "1", 1, 0) != 0) GTEST_SKIP() << "not kept here";
  auto value = extended_attribute(folder.path(), "user.delegate");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value.value(), "1");
}

TEST(ExtendedAttribute, IsNothingWhereTheFileHasNone) {
  TemporaryFolder folder;
  auto value = extended_attribute(folder.path(), "user.delegate");
  ASSERT_TRUE(value.ok());
  EXPECT_FALSE(value.value().has_value());
  // A file system that keeps none.
  auto unkept = extended_attribute("/proc/self", "user.delegate");
  ASSERT_TRUE(unkept.ok());
  EXPECT_FALSE(unkept.value().has_value());
}

TEST(ExtendedAttribute, OfAFileThatIsNotThereOrTooLongIsAnError) {
  TemporaryFolder folder;
  auto missing = extended_attribute(folder.path() + "/none", "user.delegate");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().errno_value, ENOENT);
  std::string text(300, 'x');
  if (setxattr(folder.path().c_str(), "user.delegate", text.data(), text.size(), 0) != 0)
    GTEST_SKIP() << "not kept here";
  auto long_one = extended_attribute(folder.path(), "user.delegate");
  ASSERT_FALSE(long_one.ok());
  EXPECT_EQ(long_one.error().errno_value, ERANGE);
}

}  // namespace
}  // namespace numalign
