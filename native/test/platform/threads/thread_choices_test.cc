#include "platform/threads/thread_choices.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace numalign {
namespace {

const CpuSet kAll{0, 1, 2, 3};
constexpr pid_t kThread = 100;
constexpr pid_t kBorn = 101;

CpuSet chosen(const ThreadChoices& choices, pid_t tid) { return choices.find(tid)->chosen; }

TEST(ThreadChoices, TakesAThreadThatMayRunOnAllOfItsCpusetForOneThatHasChosenNothing) {
  ThreadChoices choices;
  choices.learn({{kThread, CpuSet{1, 2}}, {kBorn, CpuSet{1}}}, {}, CpuSet{1, 2}, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), kAll);
  EXPECT_EQ(chosen(choices, kBorn), CpuSet{1});
}

TEST(ThreadChoices, KeepsAChoiceThatTheCpusetCuts) {
  ThreadChoices choices;
  choices.learn({{kThread, CpuSet{0, 1}}}, {}, kAll, kAll, {});
  choices.learn({{kThread, CpuSet{1}}}, {}, CpuSet{1, 2}, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), (CpuSet{0, 1}));
  choices.learn({{kThread, CpuSet{2, 3}}}, {}, CpuSet{2, 3}, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), (CpuSet{0, 1})) << "of which the cpuset has nothing";
  choices.learn({}, {kThread}, kAll, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), (CpuSet{0, 1})) << "while it runs on a grant";
}

TEST(ThreadChoices, TakesAnotherMaskThanWasMadeOfAChoiceForANewOne) {
  ThreadChoices choices;
  choices.learn({{kThread, CpuSet{0, 1}}}, {}, kAll, kAll, {});
  choices.learn({{kThread, CpuSet{2}}}, {}, CpuSet{1, 2}, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), CpuSet{2});
}

TEST(ThreadChoices, GoesByWhatIsKnownOfMasksThatNumalignHasSet) {
  ThreadChoices choices;
  choices.learn({{kThread, CpuSet{1}}}, {}, kAll, kAll, {{kThread, CpuSet{0, 1}, CpuSet{1}, CpuSet{1}}});
  EXPECT_EQ(chosen(choices, kThread), (CpuSet{0, 1}));
  EXPECT_EQ(choices.find(kThread)->asked, CpuSet{1});
}

TEST(ThreadChoices, GivesANewThreadTheChoiceOfTheMainThreadWhereItHasItsMask) {
  ThreadChoices choices;
  const pid_t main = getpid();
  choices.learn({{main, CpuSet{0}}, {kThread, kAll}}, {}, kAll, kAll, {});
  const CpuSet left{1, 2, 3};
  choices.learn({{main, left}, {kThread, left}, {kBorn, left}}, {}, left, kAll, {});
  EXPECT_EQ(chosen(choices, kThread), kAll);
  EXPECT_EQ(chosen(choices, kBorn), CpuSet{0});
}

TEST(ThreadChoices, ForgetsThreadsThatHaveEnded) {
  ThreadChoices choices;
  choices.learn({{kThread, kAll}}, {}, kAll, kAll, {});
  choices.learn({}, {}, kAll, kAll, {});
  EXPECT_EQ(choices.find(kThread), nullptr);
}

TEST(ThreadChoices, TellsWhatIsToBeAskedForOnceTheCpusetHasSomeOfIt) {
  ThreadChoices choices;
  choices.set(kThread, {CpuSet{0}, kAll});
  choices.set(kBorn, {CpuSet{1}, CpuSet{1}});
  EXPECT_TRUE(choices.unsettled(CpuSet{1, 2}).empty());
  EXPECT_EQ(choices.unsettled(CpuSet{0, 1}), (std::map<pid_t, CpuSet>{{kThread, CpuSet{0}}}));
}

TEST(ThreadChoices, HasNothingToAskForWhereTheCpusetLeavesNothingElse) {
  ThreadChoices choices;
  choices.set(kThread, {kAll, CpuSet{1, 2}});
  EXPECT_TRUE(choices.unsettled(CpuSet{1, 2}).empty());
}

}  // namespace
}  // namespace numalign
