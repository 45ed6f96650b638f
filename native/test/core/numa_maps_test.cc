#include "core/numa_maps.h"

#include <gtest/gtest.h>

#include <string>

#include "support/seed.h"

namespace numalign {
namespace {

using Pages = std::vector<std::pair<int, uint64_t>>;

TEST(NumaMaps, ReadsPagesByNodeAndTheirSize) {
  auto line = parse_numa_maps_line(
      "7fd245200000 bind:0 file=/anon_hugepage\\040(deleted) huge anon=4 dirty=4 N0=3 N12=1 "
      "kernelpagesize_kB=2048");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->start, 0x7fd245200000u);
  EXPECT_EQ(line->page_bytes, 2048u * 1024);
  EXPECT_EQ(line->pages_by_node, (Pages{{0, 3}, {12, 1}}));
  EXPECT_EQ(line->resident_bytes(), 4u * 2048 * 1024);
}

TEST(NumaMaps, ReadsPoliciesWithSpacesAndMappingsWithoutPages) {
  auto several = parse_numa_maps_line("7f00 prefer (many):0-1 anon=1 N1=1 kernelpagesize_kB=4\n");
  ASSERT_TRUE(several);
  EXPECT_EQ(several->pages_by_node, (Pages{{1, 1}}));
  auto untouched = parse_numa_maps_line("55d0 default file=/usr/bin/N0\\0753");
  ASSERT_TRUE(untouched);
  EXPECT_EQ(untouched->resident_bytes(), 0u);
}

TEST(NumaMaps, RefusesWhatCannotBeALine) {
  for (const char* text : {
           "",
           " ",
           "\n",
           "7f00",
           "default",
           "zz default",
           "-1 default",
           "0x10 default",
           "11112222333344445 default",                                  // more than 64 bits
           "7f00 default N0=1",                                          // pages of no size
           "7f00 default N0=1 kernelpagesize_kB=0",                      //
           "7f00 default N0=1 kernelpagesize_kB=99999999999",            //
           "7f00 default N0=1 kernelpagesize_kB=4 kernelpagesize_kB=4",  //
           "7f00 default N0=1 N0=1 kernelpagesize_kB=4",                 // a node twice
           "7f00 default N1024=1 kernelpagesize_kB=4",                   // no such node
           "7f00 default N-1=1 kernelpagesize_kB=4",                     //
           "7f00 default N=1 kernelpagesize_kB=4",                       //
           "7f00 default N0= kernelpagesize_kB=4",                       //
           "7f00 default N0=18446744073709551616 kernelpagesize_kB=4",   //
           "7f00 default N0=2199023255551 N1=2 kernelpagesize_kB=4",     // too many in all
           "7f00 default N0=1x kernelpagesize_kB=4",                     //
       }) {
    EXPECT_FALSE(parse_numa_maps_line(text)) << text;
  }
}

TEST(NumaMaps, ReadsTheRangeOfAMapping) {
  auto range = parse_maps_line("7f0000000000-7f0000200000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->start, 0x7f0000000000u);
  EXPECT_EQ(range->end, 0x7f0000200000u);
  // The page that the kernel maps above everything.
  EXPECT_TRUE(parse_maps_line("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"));
  for (const char* text :
       {"", "-", "7f00", "7f00-", "-7f00", "7f00-7f00", "7f01-7f00", "7f00-7g00", "7f00 -7f01"}) {
    EXPECT_FALSE(parse_maps_line(text)) << text;
  }
}

TEST(NumaMaps, SurvivesAnyChangeOfALine) {
  const std::string whole = "7fd245200000 prefer (many):0-1 huge anon=4 N0=3 N1=1 kernelpagesize_kB=2048";
  for (uint32_t round = 0; round < 20000; round++) {
    test::Between between = test::choices(round);
    std::string text = whole;
    for (int n = between(1, 4); n > 0; n--) {
      size_t at = static_cast<size_t>(between(0, static_cast<int>(text.size()) - 1));
      if (between(0, 1) == 0) {
        text[at] = static_cast<char>(between(0, 255));
      } else {
        text.erase(at, 1);
      }
    }
    auto line = parse_numa_maps_line(text);
    if (line) {
      EXPECT_LE(line->resident_bytes(), uint64_t{1} << 53) << test::where(round);
    }
    (void)parse_maps_line(text);
  }
}

}  // namespace
}  // namespace numalign
