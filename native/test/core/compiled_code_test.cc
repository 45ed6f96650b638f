#include "core/compiled_code.h"

#include <gtest/gtest.h>

#include <cstring>

namespace numalign {
namespace {

TEST(CompiledCode, HasAHeadThatSaysWhatItIsOf) {
  const std::string file = with_head("some code", "/a/module.cjs", 7);
  CodeHead head{};
  ASSERT_EQ(file.size(), sizeof head + 9);
  memcpy(&head, file.data(), sizeof head);
  EXPECT_EQ(head, head_of("some code", "/a/module.cjs", 7));
  EXPECT_EQ(file.substr(sizeof head), "some code");
  EXPECT_EQ(sizeof head % 8, 0u);
}

TEST(CompiledCode, HasAnotherHeadWhereAnythingIsAnother) {
  const CodeHead head = head_of("some code", "/a/module.cjs", 7);
  EXPECT_NE(head, head_of("some c0de", "/a/module.cjs", 7));
  EXPECT_NE(head, head_of("some code", "/b/module.cjs", 7));
  EXPECT_NE(head, head_of("some code", "/a/module.cjs", 8));
  EXPECT_NE(sum_of_source("const a = 1;"), sum_of_source("const a = 2;"));
}

}  // namespace
}  // namespace numalign
