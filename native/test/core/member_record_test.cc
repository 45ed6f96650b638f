#include "core/member_record.h"

#include <gtest/gtest.h>

#include "support/seed.h"

namespace numalign {
namespace {

const CpuSet kAll{0, 1, 2, 3};
const CpuSet kSome{1, 2};

TEST(MemberRecord, HasARowForEachThreadAndLeavesOutWhatFollows) {
  const std::vector<MemberThread> threads{
      {7, kAll, kSome, kSome}, {8, kAll, kSome, kAll}, {9, {}, {}, {}}, {10, kSome, kAll, kAll}};
  EXPECT_EQ(
      format_member_record("p1-2-3", threads),
      R"({"process":"p1-2-3","threads":[[7,"0-3","1-2"],[8,"0-3","1-2","0-3"],[10,"1-2","0-3"]],"seen":[9]})");
  EXPECT_EQ(format_member_record("p", std::vector<MemberThread>{{9, {}, {}, {}}}),
            R"({"process":"p","threads":[],"seen":[9]})");
  EXPECT_EQ(format_member_record("p", {}), "");
}

TEST(MemberRecord, KeepsPlacesForMasksThatWereAskedForOnly) {
  const std::vector<MemberThread> threads{{7, kAll, kSome, kSome, CpuSet{3}}, {8, kAll, kSome, kAll, kAll}};
  const std::string asked = format_member_record("p", threads, Places::kWithAsked);
  EXPECT_EQ(parse_member_record("p", asked, Places::kWithAsked), threads);
  EXPECT_EQ(parse_member_record("q", asked, Places::kWithAsked), threads);
  const std::vector<MemberThread> on_record{{7, kAll, kSome, kSome}, {8, kAll, kSome, kAll}};
  EXPECT_EQ(parse_member_record("p", asked), on_record);
}

TEST(MemberRecord, OfAnotherProcessOrDamagedSaysNothing) {
  const std::string record = format_member_record("p", std::vector<MemberThread>{{7, kAll, kSome, kAll}});
  ASSERT_EQ(parse_member_record("p", record).size(), 1u);
  EXPECT_TRUE(parse_member_record("q", record).empty());
  for (size_t length = 0; length < record.size(); length++)
    EXPECT_TRUE(parse_member_record("p", record.substr(0, length)).empty()) << length;
  for (const char* damaged :
       {R"({"process":"p","threads":[[7,"0-3"]]})", R"({"process":"p","threads":[[7,"0-3",1]]})",
        R"({"process":"p","threads":[[99999999999,"0-3","1"]]})", R"({"process":"p","threads":[[]]})",
        R"({"process":"p","threads":[["7","0-3","1"]]})", R"({"process":"p","threads":[[7,"3-0","1"]]})",
        R"({"process":"p","threads":[[7,"0-3","1"]],"seen":[[8]]})", R"({"process":"p"})", "null", "[]"}) {
    EXPECT_TRUE(parse_member_record("p", damaged).empty()) << damaged;
  }
}

TEST(MemberRecord, ReadsBackWhatItWrites) {
  for (uint32_t round = 0; round < test::rounds(2000); round++) {
    test::Between between = test::choices(round);
    const auto set = [&] {
      CpuSet cpus{between(0, 70)};
      for (int cpu = 0; cpu < 70; cpu += between(1, 9)) cpus.insert(cpu);
      return cpus;
    };
    std::vector<MemberThread> threads(static_cast<size_t>(between(0, 5)));
    for (MemberThread& thread : threads) {
      const CpuSet applied = set();
      thread = {between(1, 5000), set(), applied, between(0, 1) == 0 ? applied : set()};
    }
    for (int seen = between(0, 2); seen > 0; seen--) threads.push_back({between(1, 5000), {}, {}, {}});
    EXPECT_EQ(parse_member_record("p", format_member_record("p", threads)), threads) << test::where(round);
  }
}

}  // namespace
}  // namespace numalign
