#include "core/task_files.h"

#include <gtest/gtest.h>

#include <string>

namespace numalign {
namespace {

const std::string kStat =
    "812 (a b) c\n) R 7 812 812 0 -1 4194560 1 2 3 4 150 25 5 6 20 0 11 0 9876 1000 2000 "
    "18446744073709551615 "
    "0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

TEST(TaskFiles, ReadsALineOfStatWhateverTheCommandIs) {
  auto stat = parse_task_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->command, "a b) c\n");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->user_ticks, 150u);
  EXPECT_EQ(stat->system_ticks, 25u);
  EXPECT_EQ(stat->start_ticks, 9876u);
  EXPECT_EQ(stat->processor, 3);
  EXPECT_FALSE(stat->is_kernel_thread());
  EXPECT_FALSE(stat->is_bound());
}

TEST(TaskFiles, TellsKernelThreadsAndThoseThatBelongToTheirCpu) {
  std::string text = kStat;
  text.replace(text.find("4194560"), 7, std::to_string(0x00200000 | 0x04000000 | 0x40));
  auto stat = parse_task_stat(text);
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->is_kernel_thread());
  EXPECT_TRUE(stat->is_bound());
}

TEST(TaskFiles, RefusesWhatCannotBeALineOfStat) {
  for (size_t length = 0; length < kStat.find(" 3 0 0") + 1; length++) {
    EXPECT_FALSE(parse_task_stat(std::string_view(kStat).substr(0, length))) << length;
  }
  for (const char* text : {"1 ) R (", "1 (x) RS 7", "1 (x)"}) EXPECT_FALSE(parse_task_stat(text)) << text;
  std::string negative = kStat;
  negative.replace(negative.find(" 17 3 "), 6, " 17 -1 ");
  EXPECT_FALSE(parse_task_stat(negative));
}

TEST(TaskFiles, ReadsSchedstat) {
  auto schedstat = parse_task_schedstat("1021397 87143 2\n");
  ASSERT_TRUE(schedstat);
  EXPECT_EQ(schedstat->run_ns, 1021397u);
  EXPECT_EQ(schedstat->delay_ns, 87143u);
  EXPECT_EQ(schedstat->timeslices, 2u);
  for (const char* text : {"", "1 2", "1 2 x", "-1 2 3"}) EXPECT_FALSE(parse_task_schedstat(text)) << text;
}

TEST(TaskFiles, ReadsSwitchesWhereverTheyAreTold) {
  auto sched = parse_task_sched(
      "node (812, #threads: 11)\n-----\nse.exec_start          :      23894344.611995\n"
      "se.nr_migrations       :                    5\nnr_switches : 12\n"
      "nr_voluntary_switches  :                    8\nnr_involuntary_switches  :          4\n");
  EXPECT_EQ(sched.migrations, 5u);
  EXPECT_EQ(sched.voluntary, 8u);
  EXPECT_EQ(sched.involuntary, 4u);
  auto status =
      parse_task_status("Name:\tnode\nvoluntary_ctxt_switches:\t8\nnonvoluntary_ctxt_switches:\t4\n");
  EXPECT_EQ(status.voluntary, 8u);
  EXPECT_EQ(status.involuntary, 4u);
  EXPECT_FALSE(status.migrations);
}

TEST(TaskFiles, TellsNothingWhereNothingIsTold) {
  for (const char* text : {"", "nr_voluntary_switches", "nr_voluntary_switches :",
                           "nr_voluntary_switches : x", "xnr_voluntary_switches : 1"}) {
    EXPECT_FALSE(parse_task_sched(text).voluntary) << text;
  }
  EXPECT_FALSE(parse_task_status("Name:\tvoluntary_ctxt_switches\n").voluntary);
}

}  // namespace
}  // namespace numalign
