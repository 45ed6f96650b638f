// Memory policy, placement and buffers, on the machine that runs the test.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "platform/memory/memory_placement.h"
#include "platform/memory/memory_policy.h"
#include "platform/memory/node_buffer.h"

namespace numalign {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// The lowest node that takes memory here. Skips where the calls are denied.
class MemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<MemoryPolicy> before = memory_policy();
    if (!before.ok()) GTEST_SKIP() << before.error().message;
    before_ = before.value();
    int nodes = 0;
    while (nodes <= NodeSet::kMaxId && !set_memory_policy({MemoryMode::kBind, NodeSet{nodes}}).ok()) nodes++;
    ASSERT_LE(nodes, NodeSet::kMaxId);
    node_ = NodeSet{nodes};
    ASSERT_TRUE(set_memory_policy(before_).ok());
  }
  void TearDown() override { (void)set_memory_policy(before_); }

  MemoryPolicy before_;
  NodeSet node_;
  NodeSet nowhere_{NodeSet::kMaxId};
};

uint64_t known_bytes(const MemoryPlacement& placement) {
  uint64_t bytes = 0;
  for (auto [node, of_node] : placement.bytes_by_node) bytes += of_node;
  return bytes;
}

TEST_F(MemoryTest, SetsThePolicyOfTheCallingThreadOnlyAndGivesItBack) {
  MemoryPolicy bound{MemoryMode::kBind, node_};
  ASSERT_TRUE(set_memory_policy(bound).ok());
  EXPECT_EQ(memory_policy().value(), bound);
  std::thread([&] {
    ASSERT_TRUE(set_memory_policy({MemoryMode::kInterleave, node_}).ok()) << "of another thread";
  }).join();
  EXPECT_EQ(memory_policy().value(), bound);
  ASSERT_TRUE(set_memory_policy(before_).ok());
  EXPECT_EQ(memory_policy().value(), before_);
}

TEST_F(MemoryTest, PrefersThoseOfSeveralNodesThatThereAre) {
  ASSERT_TRUE(set_memory_policy({MemoryMode::kPreferred, node_ | nowhere_}).ok());
  EXPECT_EQ(memory_policy().value(), (MemoryPolicy{MemoryMode::kPreferred, node_}));
}

TEST_F(MemoryTest, SaysThatNoneOfTheNodesWillDo) {
  for (MemoryMode mode : {MemoryMode::kPreferred, MemoryMode::kBind, MemoryMode::kInterleave}) {
    Result<Done> refused = set_memory_policy({mode, nowhere_});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().errno_value, EINVAL);
    EXPECT_EQ(refused.error().syscall, "set_mempolicy");
  }
  EXPECT_EQ(memory_policy().value(), before_);
}

TEST_F(MemoryTest, FindsEveryByteOfARange) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* data =
      static_cast<char*>(mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(data, MAP_FAILED);
  data[0] = data[2 * page] = data[3 * page] = 1;
  MemoryPlacement placement = placement_of_range(data + 1, 3 * page);
  EXPECT_EQ(placement.source, MemoryPlacement::Source::kMovePages);
  EXPECT_EQ(placement.absent, page);
  EXPECT_EQ(placement.unknown, 0u);
  EXPECT_EQ(known_bytes(placement), 2 * page);
  EXPECT_EQ(known_bytes(placement_of_range(data, 0)), 0u);
  munmap(data, 8 * page);
}

TEST_F(MemoryTest, FindsPagesThatNobodyMayTouchAtPresent) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* data =
      static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(data, MAP_FAILED);
  data[0] = data[page] = 1;
  // As NUMA balancing does it with pages that it wants to see used.
  ASSERT_EQ(mprotect(data, 4 * page, PROT_NONE), 0);
  MemoryPlacement placement = placement_of_range(data, 4 * page);
  EXPECT_EQ(placement.absent, 2 * page);
  EXPECT_EQ(known_bytes(placement), 2 * page);
  munmap(data, 4 * page);
}

TEST_F(MemoryTest, FindsTheMemoryOfTheProcess) {
  MemoryPlacement placement = placement_of_process();
  if (placement.source == MemoryPlacement::Source::kNone) GTEST_SKIP() << "no /proc/self/numa_maps";
  EXPECT_GT(known_bytes(placement), 0u);
}

TEST_F(MemoryTest, MovesNothingWhereAllIsOnTheNode) {
  Result<long> left = migrate_pages(nowhere_, node_);
  if (!left.ok()) GTEST_SKIP() << left.error().message;
  EXPECT_EQ(left.value(), 0);
}

TEST_F(MemoryTest, MovesTheMemoryOfAProcessByItsId) {
  Result<long> left = migrate_pages(nowhere_, node_, getpid());
  if (!left.ok()) GTEST_SKIP() << left.error().message;
  EXPECT_EQ(left.value(), 0);
  EXPECT_EQ(migrate_pages(nowhere_, node_, 0x3fffffff).error().errno_value, ESRCH);
}

TEST_F(MemoryTest, MovesABuffer) {
  for (bool strict : {false, true}) {
    NodeBufferRequest request{.bytes = kMiB + 5, .nodes = node_, .strict = strict};
    Result<NodeBuffer> made = NodeBuffer::create(request);
    ASSERT_TRUE(made.ok()) << made.error().message;
    void* data = std::as_const(made).value().data();
    Result<Done> moved = move_node_buffer(data, request);
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    EXPECT_EQ(placement_of_range(data, kMiB + 5).absent, 0u);
    request.nodes = nowhere_;
    EXPECT_FALSE(move_node_buffer(data, request).ok());
  }
}

TEST_F(MemoryTest, MakesABufferThatIsThereAndCleared) {
  for (bool strict : {false, true}) {
    Result<NodeBuffer> made = NodeBuffer::create({.bytes = 3 * kMiB + 5, .nodes = node_, .strict = strict});
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto* data = static_cast<char*>(std::as_const(made).value().data());
    MemoryPlacement placement = placement_of_range(data, 3 * kMiB + 5);
    EXPECT_EQ(placement.absent, 0u);
    if (strict) {
      EXPECT_EQ(placement.bytes_by_node, (std::map<int, uint64_t>{{node_.first(), 3 * kMiB + 5}}));
    }
    for (size_t i = 0; i < 3 * kMiB + 5; i++) ASSERT_EQ(data[i], 0);
    data[3 * kMiB + 4] = 1;
  }
}

TEST_F(MemoryTest, RefusesABufferOnANodeThatIsNotThere) {
  Result<NodeBuffer> strict = NodeBuffer::create({.bytes = kMiB, .nodes = nowhere_, .strict = true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().errno_value, EINVAL);
  EXPECT_EQ(strict.error().syscall, "mbind");
  EXPECT_TRUE(NodeBuffer::create({.bytes = kMiB, .nodes = nowhere_}).ok()) << "preferred only";
}

TEST_F(MemoryTest, SaysThatThereAreTooFewHugepages) {
  std::ifstream file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  size_t free = 0;
  if (!(file >> free)) GTEST_SKIP() << "no hugepages of 2 MiB";
  // Some may be made on demand: more than any machine has.
  Result<NodeBuffer> made = NodeBuffer::create(
      {.bytes = (free + (size_t{1} << 24)) * 2 * kMiB, .hugepage_bytes = 2 * kMiB, .nodes = node_});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().errno_value, ENOMEM);
}

TEST_F(MemoryTest, RefusesMoreThanAnAddressSpace) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    Result<NodeBuffer> made = NodeBuffer::create({.bytes = bytes, .nodes = node_});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().errno_value, ENOMEM);
  }
}

}  // namespace
}  // namespace numalign
