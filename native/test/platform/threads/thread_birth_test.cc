#include "platform/threads/thread_birth.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "platform/threads/affinity.h"
#include "platform/threads/thread_roles.h"

namespace numalign {
namespace {

// A thread that waits until it is let go.
class Sleeper {
 public:
  Sleeper()
      : thread_([this] {
          tid_ = current_thread_id();
          while (!stop_) std::this_thread::yield();
        }) {
    while (tid_ == 0) std::this_thread::yield();
  }
  ~Sleeper() {
    stop_ = true;
    thread_.join();
  }
  pid_t tid() const { return tid_; }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(ThreadBirth, LetsAThreadBeBornElsewhereAndKnowsIt) {
  // A sanitizer starts one of its own with the first.
  std::thread([] {}).join();
  const CpuSet all = get_affinity(0).value();
  const CpuSet last{all.last()};
  const std::string name = thread_name(current_thread_id());
  std::optional<Sleeper> sleeper;
  {
    Result<ThreadBirth> birth = ThreadBirth::on(last, all);
    ASSERT_TRUE(birth.ok());
    EXPECT_EQ(birth.value().newborn(), std::nullopt);
    sleeper.emplace();
    EXPECT_EQ(birth.value().newborn(), sleeper->tid());
  }
  EXPECT_EQ(get_affinity(sleeper->tid()).value(), last);
  EXPECT_EQ(get_affinity(0).value(), all);
  EXPECT_EQ(thread_name(current_thread_id()), name);
}

TEST(ThreadBirth, KnowsItAmongThreadsThatOthersStart) {
  const CpuSet all = get_affinity(0).value();
  std::atomic<bool> stop = false;
  std::thread breeder([&] {
    while (!stop) {
      Sleeper first, second;
    }
  });
  for (int i = 0; i < 300; i++) {
    Result<ThreadBirth> birth = ThreadBirth::on(all, all);
    ASSERT_TRUE(birth.ok());
    Sleeper sleeper;
    EXPECT_EQ(birth.value().newborn(), sleeper.tid());
  }
  stop = true;
  breeder.join();
}

TEST(ThreadBirth, ChangesNothingWhereTheCpusCannotBeUsed) {
  const CpuSet all = get_affinity(0).value();
  const std::string name = thread_name(current_thread_id());
  Result<ThreadBirth> birth = ThreadBirth::on(CpuSet{16'383}, all);
  ASSERT_FALSE(birth.ok());
  EXPECT_EQ(birth.error().errno_value, EINVAL);
  EXPECT_EQ(get_affinity(0).value(), all);
  EXPECT_EQ(thread_name(current_thread_id()), name);
}

}  // namespace
}  // namespace numalign
