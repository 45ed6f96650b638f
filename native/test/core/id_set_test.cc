#include "core/id_set.h"

#include <gtest/gtest.h>

#include <set>
#include <type_traits>
#include <vector>

#include "support/seed.h"

namespace numalign {
namespace {

using Ids = std::set<int>;

static_assert(!std::is_same_v<CpuSet, NodeSet>);
static_assert(!std::is_constructible_v<CpuSet, NodeSet>, "a CPU set is not a node set");

Ids ids_of(const CpuSet& set) {
  Ids ids;
  set.for_each([&](int id) { ids.insert(id); });
  return ids;
}

CpuSet random_set(const test::Between& between) {
  CpuSet set;
  int greatest = test::chance(between, 10) ? CpuSet::kMaxId : between(0, 200);
  for (int n = between(0, 40); n > 0; n--) {
    int first = between(0, greatest);
    if (test::chance(between, 30)) {
      set.insert_range(first, between(first, std::min(greatest, first + 150)));
    } else {
      set.insert(first);
    }
  }
  return set;
}

bool is_canonical(const CpuSet& set) { return set.words().empty() || set.words().back() != 0; }

TEST(IdSet, IsEmptyAtFirst) {
  CpuSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0);
  EXPECT_EQ(set.first(), -1);
  EXPECT_EQ(set.last(), -1);
  EXPECT_EQ(set.next(0), -1);
  EXPECT_FALSE(set.contains(0));
  EXPECT_TRUE(set.words().empty());
}

TEST(IdSet, HoldsTheIdsAtTheEdgesOfWords) {
  CpuSet set{0, 63, 64, 127, 128};
  EXPECT_EQ(ids_of(set), (Ids{0, 63, 64, 127, 128}));
  EXPECT_EQ(set.words().size(), 3u);
  EXPECT_EQ(set.words()[0], uint64_t{1} | uint64_t{1} << 63);
}

TEST(IdSet, HoldsTheGreatestIdsOfTheKernel) {
  for (int id : {8191, 16383, CpuSet::kMaxId}) {
    CpuSet set{id};
    EXPECT_EQ(set.size(), 1);
    EXPECT_EQ(set.first(), id);
    EXPECT_EQ(set.last(), id);
    EXPECT_TRUE(set.contains(id));
    EXPECT_FALSE(set.contains(id - 1));
    EXPECT_FALSE(set.contains(id + 1));
  }
  EXPECT_EQ(CpuSet::kMaxId, 65535);
  EXPECT_EQ(NodeSet{1023}.last(), 1023);
  EXPECT_EQ(NodeSet::kMaxId, 1023);
}

TEST(IdSet, NeverContainsANegativeId) {
  CpuSet set;
  set.insert_range(0, 200);
  EXPECT_FALSE(set.contains(-1));
  EXPECT_FALSE(set.contains(-64));
}

TEST(IdSet, FindsTheLowestMemberFromAnId) {
  CpuSet set{3, 64, 200};
  EXPECT_EQ(set.next(0), 3);
  EXPECT_EQ(set.next(3), 3);
  EXPECT_EQ(set.next(4), 64);
  EXPECT_EQ(set.next(65), 200);
  EXPECT_EQ(set.next(201), -1);
  EXPECT_EQ(set.next(-5), 3);
}

TEST(IdSet, DropsTrailingZeroWordsSoThatEqualSetsHaveEqualWords) {
  CpuSet set{1, 1000};
  set.erase(1000);
  EXPECT_EQ(set, CpuSet{1});
  EXPECT_EQ(set.words().size(), 1u);
  std::vector<uint64_t> words = {2, 0, 0};
  EXPECT_EQ(CpuSet::from_words(words), CpuSet{1});
  EXPECT_EQ((CpuSet{1, 1000} & CpuSet{1, 999}).words().size(), 1u);
  EXPECT_EQ((CpuSet{1, 1000} - CpuSet{1000}).words().size(), 1u);
}

TEST(IdSet, InsertsWholeRanges) {
  for (int first : {0, 1, 62, 63, 64, 65, 127, 128}) {
    for (int last : {first, first + 1, first + 62, first + 63, first + 64, first + 200}) {
      CpuSet set;
      set.insert_range(first, last);
      EXPECT_EQ(set.first(), first);
      EXPECT_EQ(set.last(), last);
      EXPECT_EQ(set.size(), last - first + 1);
    }
  }
  CpuSet all;
  all.insert_range(0, CpuSet::kMaxId);
  EXPECT_EQ(all.size(), CpuSet::kMaxId + 1);
}

TEST(IdSet, AgreesWithAnOrdinarySetAfterAnySequenceOfChanges) {
  for (uint32_t round = 0; round < 300; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    CpuSet set;
    Ids model;
    for (int step = 0; step < 60; step++) {
      int id = between(0, 300);
      switch (between(0, 2)) {
        case 0:
          set.insert(id);
          model.insert(id);
          break;
        case 1:
          set.erase(id);
          model.erase(id);
          break;
        default: {
          int last = between(id, 320);
          set.insert_range(id, last);
          for (int i = id; i <= last; i++) model.insert(i);
        }
      }
      ASSERT_TRUE(is_canonical(set));
    }
    ASSERT_EQ(ids_of(set), model);
    ASSERT_EQ(set.size(), static_cast<int>(model.size()));
    ASSERT_EQ(set.empty(), model.empty());
    ASSERT_EQ(set.first(), model.empty() ? -1 : *model.begin());
    ASSERT_EQ(set.last(), model.empty() ? -1 : *model.rbegin());
    ASSERT_EQ(CpuSet::from_words(set.words()), set);
    for (int id = 0; id < 330; id++) {
      ASSERT_EQ(set.contains(id), model.contains(id));
      auto next = model.lower_bound(id);
      ASSERT_EQ(set.next(id), next == model.end() ? -1 : *next);
    }
  }
}

TEST(IdSet, KeepsTheLawsOfSetAlgebra) {
  for (uint32_t round = 0; round < 300; round++) {
    SCOPED_TRACE(test::where(round));
    test::Between between = test::choices(round);
    CpuSet a = random_set(between);
    CpuSet b = random_set(between);
    CpuSet c = random_set(between);
    for (const CpuSet& set : {a | b, a & b, a - b, b - a}) ASSERT_TRUE(is_canonical(set));

    Ids either = ids_of(a), both, only_a;
    for (int id : ids_of(b)) either.insert(id);
    for (int id : ids_of(a)) (b.contains(id) ? both : only_a).insert(id);
    ASSERT_EQ(ids_of(a | b), either);
    ASSERT_EQ(ids_of(a & b), both);
    ASSERT_EQ(ids_of(a - b), only_a);
    ASSERT_EQ(a.is_subset_of(b), only_a.empty());
    ASSERT_EQ(a.intersects(b), !both.empty());

    ASSERT_EQ(a | b, b | a);
    ASSERT_EQ(a & b, b & a);
    ASSERT_EQ((a | b) | c, a | (b | c));
    ASSERT_EQ((a & b) & c, a & (b & c));
    ASSERT_EQ(a & (b | c), (a & b) | (a & c));
    ASSERT_EQ(a | (b & c), (a | b) & (a | c));
    ASSERT_EQ(a - (b | c), (a - b) & (a - c));
    ASSERT_EQ(a - (b & c), (a - b) | (a - c));
    ASSERT_EQ((a - b) | (a & b), a);
    ASSERT_EQ(a - a, CpuSet());
    ASSERT_EQ(a | CpuSet(), a);
    ASSERT_EQ(a & CpuSet(), CpuSet());
    ASSERT_EQ((a | b).size(), a.size() + b.size() - (a & b).size());
  }
}

TEST(IdSet, CanBeCombinedWithItself) {
  CpuSet set{1, 70, 300};
  set |= set;
  set &= set;
  EXPECT_EQ(set, (CpuSet{1, 70, 300}));
  set -= set;
  EXPECT_TRUE(set.empty());
}

TEST(NodeMask, OrdersByNumberOfNodesAndThenByLowerBits) {
  EXPECT_TRUE(NodeMask(0b1000).is_narrower_than(NodeMask(0b0011)));
  EXPECT_FALSE(NodeMask(0b0011).is_narrower_than(NodeMask(0b1000)));
  EXPECT_TRUE(NodeMask(0b0011).is_narrower_than(NodeMask(0b0101)));
  EXPECT_FALSE(NodeMask(0b0101).is_narrower_than(NodeMask(0b0101)));
  EXPECT_TRUE(NodeMask(uint64_t{1} << 62).is_narrower_than(NodeMask(uint64_t{1} << 63)));
}

TEST(NodeMask, HoldsSixtyFourNodes) {
  NodeMask all(~uint64_t{0});
  EXPECT_EQ(all.size(), 64);
  EXPECT_TRUE(all.contains(0));
  EXPECT_TRUE(all.contains(63));
  EXPECT_FALSE(all.contains(64));
  EXPECT_FALSE(all.contains(-1));
  EXPECT_TRUE((NodeMask(0b01) & NodeMask(0b10)).empty());
  EXPECT_EQ(NodeMask(0b01) | NodeMask(0b10), NodeMask(0b11));
}

}  // namespace
}  // namespace numalign
