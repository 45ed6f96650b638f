#include "platform/files/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "support/temporary_folder.h"

namespace numalign {
namespace {

using namespace std::chrono_literals;
using test::TemporaryFolder;

std::shared_ptr<const Folder> open(const TemporaryFolder& temporary) {
  return std::make_shared<const Folder>(std::move(Folder::open(temporary.path(), {})).value());
}

// Takes the lock if it is free.
std::optional<HeldLock> try_lock_or_die(const Folder& folder, const std::string& note = "a test") {
  Result<std::optional<HeldLock>> lock = try_lock_file(folder, "lock", note);
  EXPECT_TRUE(lock.ok());
  return std::move(lock).value();
}

// Byte 1, which the first who waits for the lock has.
struct flock turnstile() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 1;
  lock.l_len = 1;
  return lock;
}

// Returns once somebody waits for the lock.
void wait_for_turnstile(const Folder& folder) {
  UniqueFd file = std::move(folder.open_file("lock", false, false)).value();
  for (;;) {
    struct flock lock = turnstile();
    ASSERT_EQ(fcntl(file.get(), F_OFD_GETLK, &lock), 0);
    if (lock.l_type != F_UNLCK) return;
    std::this_thread::sleep_for(1ms);
  }
}

TEST(FileLock, KnowsWhetherItsFileWasRemoved) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> lock = try_lock_or_die(*folder);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->check(*folder).ok());
  ASSERT_TRUE(folder->remove("lock").ok());
  EXPECT_EQ(lock->check(*folder).error().errno_value, ESTALE);
  // Somebody else has it now, in another file.
  std::optional<HeldLock> other = try_lock_or_die(*folder);
  ASSERT_TRUE(other);
  EXPECT_EQ(lock->check(*folder).error().errno_value, ESTALE);
  EXPECT_TRUE(other->check(*folder).ok());
}

TEST(FileLock, IsHeldByOneAtATimeEvenWithinAProcess) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> first = try_lock_or_die(*folder, "the first");
  ASSERT_TRUE(first);
  EXPECT_FALSE(try_lock_or_die(*folder, "the second"));
  EXPECT_EQ(*folder->read("lock", 100).value(), "the first");
  first->release();
  EXPECT_TRUE(try_lock_or_die(*folder));
}

TEST(FileLock, IsDroppedByTheKernelWhenItsProcessIsKilled) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  pid_t child = fork();
  if (child == 0) {
    std::optional<HeldLock> lock = std::move(try_lock_file(*folder, "lock", "the child")).value();
    if (write(ready[1], lock ? "y" : "n", 1) == 1) pause();
    _exit(1);
  }
  char taken = 0;
  ASSERT_EQ(read(ready[0], &taken, 1), 1);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(taken, 'y');
  EXPECT_FALSE(try_lock_or_die(*folder));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(try_lock_or_die(*folder));
}

TEST(FileLock, GoesToThoseWhoWaitUnlessTheyArePassed) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  // As somebody does who waits.
  UniqueFd waiting = std::move(folder->open_file("lock", true, false)).value();
  struct flock taken = turnstile();
  ASSERT_EQ(fcntl(waiting.get(), F_OFD_SETLK, &taken), 0);
  EXPECT_FALSE(try_lock_or_die(*folder));
  std::optional<HeldLock> passed = std::move(try_lock_file(*folder, "lock", "a test", true)).value();
  EXPECT_TRUE(passed);
  waiting.reset();
  EXPECT_FALSE(try_lock_or_die(*folder));
  passed->release();
  EXPECT_TRUE(try_lock_or_die(*folder));
}

TEST(FileLock, KeepsOutVersionsThatLockTheWholeFileAndIsKeptOutByThem) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> lock = try_lock_or_die(*folder);
  ASSERT_TRUE(lock);
  UniqueFd earlier = std::move(folder->open_file("lock", false, false)).value();
  EXPECT_FALSE(try_lock(earlier.get()).value());
  lock->release();
  EXPECT_TRUE(try_lock(earlier.get()).value());
  EXPECT_FALSE(try_lock_or_die(*folder));
  EXPECT_FALSE(std::move(try_lock_file(*folder, "lock", "a test", true)).value());
}

TEST(FileLock, IsSeenAsHeldElsewhereThroughEveryOtherDescription) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  UniqueFd owner = std::move(folder->open_file("owner", true, true)).value();
  ASSERT_TRUE(try_lock(owner.get()).value());
  EXPECT_FALSE(is_locked_elsewhere(owner.get()).value());
  UniqueFd other = std::move(folder->open_file("owner", false, false)).value();
  EXPECT_TRUE(is_locked_elsewhere(other.get()).value());
  EXPECT_FALSE(try_lock(other.get()).value());
  // A copy, as a child would have it, keeps the lock.
  UniqueFd copy(dup(owner.get()));
  owner.reset();
  EXPECT_TRUE(is_locked_elsewhere(other.get()).value());
  copy.reset();
  EXPECT_FALSE(is_locked_elsewhere(other.get()).value());
}

TEST(LockQueue, ServesRequestsInOrderOneAtATime) {
  TemporaryFolder temporary;
  LockQueue queue(open(temporary), "lock", "the queue");
  std::atomic<int> inside = 0;
  std::atomic<int> served = 0;
  std::promise<void> done;
  for (int i = 0; i < 20; i++) {
    (void)queue.wait([&, i](Result<HeldLock> lock) {
      EXPECT_TRUE(lock.ok());
      EXPECT_EQ(inside++, 0);
      EXPECT_EQ(served++, i);
      inside--;
      if (i == 19) done.set_value();
    });
  }
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
}

TEST(LockQueue, CallsNoRequestThatWasGivenUp) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(*folder);
  LockQueue queue(folder, "lock", "the queue");
  std::atomic<bool> given_up_was_called = false;
  std::promise<void> served;
  uint64_t first = queue.wait([&](Result<HeldLock>) { given_up_was_called = true; }).value();
  (void)queue.wait([&](Result<HeldLock>) { served.set_value(); });
  EXPECT_TRUE(queue.give_up(first));
  EXPECT_FALSE(queue.give_up(first));
  holder->release();
  EXPECT_EQ(served.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_FALSE(given_up_was_called);
}

TEST(LockQueue, LetsTheLockGoWhenNobodyWaitsAnyMore) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> holder = try_lock_or_die(*folder);
  {
    LockQueue queue(folder, "lock", "the queue");
    (void)queue.wait([](Result<HeldLock>) { ADD_FAILURE() << "the queue is gone"; });
  }
  holder->release();
  auto end = std::chrono::steady_clock::now() + 30s;
  std::optional<HeldLock> again;
  while (!(again = try_lock_or_die(*folder)) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(again);
}

TEST(LockQueue, KeepsManyThreadsApart) {
  TemporaryFolder temporary;
  int counter = 0;  // guarded by the file's lock alone
  constexpr int kThreads = 4, kRounds = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&] {
      LockQueue queue(open(temporary), "lock", "a thread");
      for (int i = 0; i < kRounds; i++) {
        std::promise<HeldLock> taken;
        (void)queue.wait([&](Result<HeldLock> lock) { taken.set_value(std::move(lock).value()); });
        HeldLock lock = taken.get_future().get();
        std::atomic_ref(counter).fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, kThreads * kRounds);
}

TEST(LockQueue, IsNotFooledByAReplacedFile) {
  TemporaryFolder temporary;
  auto folder = open(temporary);
  std::optional<HeldLock> old_lock = try_lock_or_die(*folder);
  std::promise<void> served;
  LockQueue queue(folder, "lock", "the queue");
  (void)queue.wait([&](Result<HeldLock>) { served.set_value(); });
  wait_for_turnstile(*folder);
  ASSERT_TRUE(folder->remove("lock").ok());
  std::optional<HeldLock> new_lock = try_lock_or_die(*folder);
  ASSERT_TRUE(new_lock);
  old_lock->release();
  std::future<void> future = served.get_future();
  EXPECT_EQ(future.wait_for(100ms), std::future_status::timeout)
      << "the removed file's lock counts for nothing";
  new_lock->release();
  EXPECT_EQ(future.wait_for(30s), std::future_status::ready);
}

}  // namespace
}  // namespace numalign
