#include "core/id_list.h"

#include <gtest/gtest.h>

#include <string>

#include "support/seed.h"

namespace numalign {
namespace {

std::string refusal(std::string_view text) {
  auto parsed = parse_id_list<CpuTag>(text);
  if (parsed.ok()) return "accepted as " + format_id_list(parsed.value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidList);
  return parsed.error().message;
}

std::string round_trip(std::string_view text) {
  auto parsed = parse_id_list<CpuTag>(text);
  return parsed.ok() ? format_id_list(parsed.value()) : "refused: " + parsed.error().message;
}

TEST(IdList, ReadsNothingAsTheEmptySet) {
  EXPECT_EQ(parse_id_list<CpuTag>("").value(), CpuSet());
  EXPECT_EQ(format_id_list(CpuSet()), "");
}

TEST(IdList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_id_list<CpuTag>("0-3,8").value(), (CpuSet{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_id_list<NodeTag>("1").value(), NodeSet{1});
}

TEST(IdList, PrintsAscendingRunsOfTwoOrMore) {
  EXPECT_EQ(format_id_list(CpuSet{5}), "5");
  EXPECT_EQ(format_id_list(CpuSet{5, 6}), "5-6");
  EXPECT_EQ(format_id_list(CpuSet{9, 0, 63, 64, 2, 1}), "0-2,9,63-64");
}

TEST(IdList, AcceptsAnyOrderOverlapsRepeatsLeadingZerosAndPlusSigns) {
  EXPECT_EQ(round_trip("3-5,1,4-9,1-1"), "1,3-9");
  EXPECT_EQ(round_trip("8,8,8"), "8");
  EXPECT_EQ(round_trip("007"), "7");
  EXPECT_EQ(round_trip("000000000000000000000000000000000001"), "1");
  EXPECT_EQ(round_trip("+3"), "3");
  EXPECT_EQ(round_trip("+1-+3,094-95"), "1-3,94-95");
}

TEST(IdList, RefusesWhatIsNotAListOfIds) {
  for (std::string_view text :
       {"7-2", "0,",  ",0",  ",",       "-",    "-1",    "1-",      "-3-5",    "1--2",     "a",       "0-b",
        "a-3", " 0",  "0 ",  "0, 1",    "0x10", "1_000", "--1",     "0-3-5",   "1.5",      "0,,1",    "0\n",
        "0\t", "1;2", "1:2", "0-3:1/2", "all",  "0-3,",  "^3",      "0-15,^3", "0,x5-18",  "76018+",  "+",
        "++3", "+-3", "3+",  "-0",      "0-+",  "+ 3",   "0-7:2/4", "1e3",     "\xd9\xa1", "1,-26,33"}) {
    EXPECT_FALSE(parse_id_list<CpuTag>(text).ok()) << text;
  }
  using std::string_view_literals::operator""sv;
  EXPECT_FALSE(parse_id_list<CpuTag>("\0"sv).ok());
  EXPECT_FALSE(parse_id_list<CpuTag>("1\0"sv).ok());
}

TEST(IdList, NamesTheOffendingPart) {
  EXPECT_EQ(refusal("0-3,7-5,9"), "\"7-5\" is neither an id nor an ascending range of ids from 0 to 65535");
  EXPECT_EQ(refusal("0,,1"), "\"\" is neither an id nor an ascending range of ids from 0 to 65535");
}

TEST(IdList, QuotesNoMoreThanAPersonCanRead) {
  std::string message = refusal(std::string(100000, 'x'));
  EXPECT_LT(message.size(), 150u);
  EXPECT_EQ(message.substr(0, 45), "\"" + std::string(40, 'x') + "…\"");
}

TEST(IdList, ReadsIdsUpToTheGreatest) {
  EXPECT_EQ(round_trip("16383"), "16383");
  EXPECT_EQ(round_trip("65535"), "65535");
  EXPECT_EQ(round_trip("0-65535"), "0-65535");
  EXPECT_EQ(parse_id_list<NodeTag>("1023").value(), NodeSet{1023});
}

TEST(IdList, RefusesIdsAboveTheGreatest) {
  for (std::string_view text : {"65536", "0-65536", "2147483647", "2147483648", "4294967296",
                                "18446744073709551616", "99999999999999999999", "0-9223372036854775808"}) {
    EXPECT_FALSE(parse_id_list<CpuTag>(text).ok()) << text;
  }
  auto node = parse_id_list<NodeTag>("1024");
  ASSERT_FALSE(node.ok());
  EXPECT_EQ(node.error().message, "\"1024\" is neither an id nor an ascending range of ids from 0 to 1023");
}

TEST(IdList, ReadsBackWhatItPrints) {
  for (uint32_t round = 0; round < 500; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    CpuSet set;
    for (int id = between(0, 100); id <= CpuSet::kMaxId; id += between(1, 1 << between(0, 14)))
      set.insert(id);
    std::string text = format_id_list(set);
    auto parsed = parse_id_list<CpuTag>(text);
    ASSERT_TRUE(parsed.ok()) << text;
    ASSERT_EQ(parsed.value(), set);
  }
}

TEST(IdList, ReadsTheSameSetFromPartsInAnyOrder) {
  for (uint32_t round = 0; round < 300; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    CpuSet set;
    std::vector<std::string> parts;
    for (int n = between(1, 20); n > 0; n--) {
      int first = between(0, 500);
      int last = test::chance(between, 50) ? first : between(first, 600);
      set.insert_range(first, last);
      parts.push_back(std::to_string(first) + (last > first ? "-" + std::to_string(last) : ""));
    }
    test::shuffle(between, parts);
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    ASSERT_EQ(parse_id_list<CpuTag>(text).value(), set) << text;
  }
}

}  // namespace
}  // namespace numalign
