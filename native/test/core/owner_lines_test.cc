#include "core/owner_lines.h"

#include <gtest/gtest.h>

#include <string>

namespace numalign {
namespace {

constexpr const char* kHead = R"({"format":"numalign-owner","version":4,"generation":5,"settings":{}})"
                              "\n";
constexpr const char* kEnd = R"({"lines":"0000000001"})"
                             "\n";

std::string file(const std::string& lines, const std::string& head = kHead) { return head + lines + kEnd; }

TEST(OwnerLines, WithoutClaimsSettleTheirGeneration) {
  for (const std::string& text : {file(""), file("{\"generation\":5,\"settings\":{}}\n"),
                                  file("{\"generation\":5,\"released\":\"a\"}\n")}) {
    EXPECT_FALSE(is_settled_at(text, 4)) << text;
    EXPECT_TRUE(is_settled_at(text, 5)) << text;
    EXPECT_TRUE(is_settled_at(text, 6)) << text;
  }
}

TEST(OwnerLines, WithClaimsSettleOnlyLaterGenerations) {
  for (const std::string& text : {file("{\"generation\":5,\"pod\":{}}\n"),
                                  file("{\"generation\":5,\"pod\":{}}\n{\"generation\":5,\"settings\":{}}\n"),
                                  file("{\"generation\":4,\"pod\":{}}\n{\"generation\":5,\"settings\":{}}\n"),
                                  file("{\"generation\":5,\"kubelet\":null}\n"),
                                  file("", "{\"generation\":5,\"kubelet\":{\"uid\":\"k\"}}\n")}) {
    EXPECT_FALSE(is_settled_at(text, 4)) << text;
    EXPECT_FALSE(is_settled_at(text, 5)) << text;
    EXPECT_TRUE(is_settled_at(text, 6)) << text;
  }
}

TEST(OwnerLines, SettleNothingIfTheyShowNoGeneration) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string(kHead), std::string(kEnd), std::string(kHead) + kHead,
        file("").substr(0, file("").size() - 1), file("{}\n"), file("\n"), file("nonsense\n"),
        file("{\"generation\":\"4\"}\n"), file("{\"generation\":-4}\n"), file("{\"generation\":4.0}\n"),
        file("{\"generation\":1000000000000000}\n"), file("{\"generation\":5}\n", "nonsense\n")})
    EXPECT_FALSE(is_settled_at(text, 5)) << text;
}

}  // namespace
}  // namespace numalign
