#include "platform/threads/member_choices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "platform/threads/affinity.h"
#include "support/waiting_process.h"

namespace numalign {
namespace {

const CpuSet kAll{0, 1, 2, 3};
constexpr pid_t kThread = 100;
constexpr pid_t kOther = 90;

// A thread that had chosen all CPUs, and was given `applied`.
MemberThread given(pid_t tid, const CpuSet& applied) { return {tid, kAll, applied, applied}; }

struct Known {
  std::vector<MemberThread> threads;
  std::vector<pid_t> unpinned = {};
  std::vector<CpuSet> grants = {};
  CpuSet limit = {};
};

MemberChoice choice(const CpuSet& mask, const Known& known) {
  return choice_of(kThread, mask, {known.threads, known.unpinned, known.grants, known.limit}, known.limit,
                   kAll);
}

CpuSet chosen(const CpuSet& mask, const Known& known) { return choice(mask, known).thread.chosen; }

TEST(MemberChoices, TakeAnUnexplainedMaskForAChoice) {
  const CpuSet mask{1, 2};
  EXPECT_EQ(choice(mask, {}), (MemberChoice{{kThread, mask, mask, mask, mask}, false}));
}

TEST(MemberChoices, KnowWhatAThreadHadBeforeItWasGivenItsMask) {
  const CpuSet mask{1};
  EXPECT_EQ(choice(mask, {{given(kThread, mask)}}), (MemberChoice{{kThread, kAll, mask, mask, mask}, false}));
  EXPECT_EQ(chosen(CpuSet{2}, {{given(kThread, mask)}}), (CpuSet{2})) << "it has chosen since";
}

TEST(MemberChoices, RecogniseAMaskThatTheCpusetHasCut) {
  const MemberThread thread{kThread, CpuSet{0, 1, 2}, CpuSet{1, 2}, CpuSet{1, 2}};
  EXPECT_EQ(chosen(CpuSet{1}, {.threads = {thread}, .limit = CpuSet{0, 1}}), (CpuSet{0, 1, 2}));
  EXPECT_EQ(chosen(CpuSet{1}, {.threads = {thread}, .limit = CpuSet{1, 2, 3}}), (CpuSet{1}));
}

TEST(MemberChoices, PreferWhatWasAppliedToWhatWasAsked) {
  const MemberThread asked{kThread, CpuSet{0, 1}, CpuSet{3}, CpuSet{1}};
  const MemberThread applied{kThread, CpuSet{1, 2}, CpuSet{1}, CpuSet{1, 3}};
  EXPECT_EQ(chosen(CpuSet{1}, {{asked, applied}}), (CpuSet{1, 2}));
}

TEST(MemberChoices, AreKeptWhereAGrantHasSetTheMask) {
  const Known known{.threads = {given(kThread, CpuSet{1})}, .grants = {CpuSet{2, 3}}};
  EXPECT_EQ(chosen(CpuSet{2}, known), kAll) << "in the grant";
  EXPECT_EQ(chosen(CpuSet{1, 2}, known), (CpuSet{1, 2})) << "only partly in it";
  EXPECT_EQ(chosen(CpuSet{2}, {.threads = {given(kThread, CpuSet{1})}, .unpinned = {kThread}}), kAll)
      << "just unpinned";
  EXPECT_EQ(chosen(CpuSet{2}, {.threads = {given(kThread, CpuSet{1})}, .unpinned = {kOther}}), (CpuSet{2}))
      << "another was unpinned";
}

TEST(MemberChoices, AreNotMadeUpForAThreadOfWhichOnlyItsPresenceIsKnown) {
  const MemberThread seen{kThread, {}, {}, {}};
  EXPECT_EQ(chosen(CpuSet{1}, {.threads = {seen}, .unpinned = {kThread}}), (CpuSet{1}));
}

TEST(MemberChoices, AreInheritedByAThreadThatWasBornOfOneWithTheSameMask) {
  const CpuSet mask{1};
  EXPECT_EQ(choice(mask, {{given(kOther, mask)}}), (MemberChoice{{kThread, kAll, mask, mask, mask}, false}))
      << "and keeps its mask";
  EXPECT_EQ(chosen(mask, {{given(kOther, mask), {kThread, {}, {}, {}}}}), mask) << "it was there before";
  EXPECT_EQ(chosen(mask, {{given(kOther, CpuSet{2})}}), mask);
}

TEST(MemberChoices, OfAThreadThatMayUseAllOfItsCpusetAreAllAndFree) {
  const CpuSet limit{1, 2};
  EXPECT_EQ(choice(limit, {.threads = {}, .limit = limit}),
            (MemberChoice{{kThread, kAll, limit, limit, limit}, true}));
  EXPECT_FALSE(choice(CpuSet{1}, {.threads = {}, .limit = limit}).is_free);
  EXPECT_FALSE(choice(CpuSet{1, 2, 4}, {.threads = {}, .limit = limit}).is_free) << "beyond all";
  const MemberThread narrow{kThread, CpuSet{1, 2}, limit, limit};
  EXPECT_EQ(choice(limit, {.threads = {narrow}, .limit = limit}),
            (MemberChoice{{kThread, CpuSet{1, 2}, limit, limit, limit}, false}))
      << "its choice must be given back by hand";
}

TEST(MemberChoices, AreReadOfEveryThreadOfAProcess) {
  test::WaitingProcess process;
  const CpuSet mask = get_affinity(process.pid()).value();
  const CpuSet all = mask | CpuSet{1023};
  auto choices = member_choices({.pid = process.pid(),
                                 .known = {{process.pid(), all, mask, mask}},
                                 .unpinned = {},
                                 .grants = {},
                                 .limit = {},
                                 .all = all});
  ASSERT_TRUE(choices.ok());
  // A sanitizer may have a thread of its own in it.
  EXPECT_EQ(choices.value().size(), threads_of(process.pid()).value().size());
  EXPECT_EQ(choices.value().front(), (MemberChoice{{process.pid(), all, mask, mask, mask}, false}));
}

TEST(MemberChoices, OfAProcessThatIsNotThereAreAnError) {
  auto choices =
      member_choices({.pid = 0x7fffffff, .known = {}, .unpinned = {}, .grants = {}, .limit = {}, .all = {}});
  ASSERT_FALSE(choices.ok());
  EXPECT_EQ(choices.error().errno_value, ESRCH);
}

}  // namespace
}  // namespace numalign
