#include "platform/threads/pool_barrier.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace numalign {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60'000};

TEST(PoolBarrier, WaitsUntilAllHaveArrived) {
  PoolBarrier barrier(3, kLong);
  std::vector<PoolThreads> answers(3);
  std::vector<std::thread> threads;
  for (PoolThreads& answer : answers) threads.emplace_back([&] { answer = barrier.arrive(); });
  for (std::thread& thread : threads) thread.join();
  for (const PoolThreads& answer : answers) {
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.tids.size(), 3u);
  }
  EXPECT_TRUE(barrier.arrive().complete) << "a later thread does not wait";
}

TEST(PoolBarrier, DoesNotWaitLongerThanItsTime) {
  PoolBarrier barrier(2, milliseconds(20));
  const PoolThreads alone = barrier.arrive();
  EXPECT_FALSE(alone.complete);
  EXPECT_EQ(alone.tids.size(), 1u);
  EXPECT_FALSE(barrier.arrive().complete) << "one thread twice is one thread";
}

TEST(PoolBarrier, IsSharedByAllWhoAskWhileItIsOpen) {
  auto first = PoolBarrier::open_for(2, kLong);
  EXPECT_EQ(PoolBarrier::open_for(2, kLong), first);
  EXPECT_NE(PoolBarrier::open_for(3, kLong), first) << "for another number of threads";
  auto again = PoolBarrier::open_for(2, kLong);
  std::thread other([&] { again->arrive(); });
  EXPECT_TRUE(again->arrive().complete);
  other.join();
  EXPECT_NE(PoolBarrier::open_for(2, kLong), again) << "it is over";
}

}  // namespace
}  // namespace numalign
