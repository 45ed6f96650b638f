#include "platform/files/owner_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "platform/files/owner_files.h"
#include "support/temporary_folder.h"

namespace numalign {
namespace {

using test::TemporaryFolder;

class OwnerNamesTest : public ::testing::Test {
 protected:
  OwnerNamesTest()
      : owners_(std::move(Folder::open(path_ + "/owners", {.create = true, .group = {}})).value()),
        notes_(std::move(Folder::open(path_ + "/notes", {.create = true, .group = {}})).value()) {}

  void write(const std::string& name) { std::ofstream(path_ + "/owners/" + name) << name; }
  uint32_t sum() const { return sum_of_files(owners_, {}).value(); }
  void note() {
    ASSERT_TRUE(names_.begin_look(folders_));
    names_.end_look(folders_);
  }
  std::string noted() const { return notes_.read("owners.note", 1000).value().value_or(""); }

  // The tests of the library say which changes count; these need a folder in memory.
  TemporaryFolder temporary_{"/dev/shm"};
  const std::string path_ = temporary_.path();
  const Folder owners_, notes_;
  const OwnerFolders folders_{owners_, notes_, path_};
  OwnerNames names_;
};

TEST_F(OwnerNamesTest, AreToldByASumThatIsKnown) {
  write("a");
  EXPECT_EQ(names_.are_noted(folders_), false);
  EXPECT_FALSE(names_.confirm(sum()));
  note();
  EXPECT_EQ(names_.are_noted(folders_), std::nullopt);
  EXPECT_FALSE(names_.confirm(sum() + 1));
  EXPECT_FALSE(names_.confirm(sum()));
  EXPECT_EQ(names_.are_noted(folders_), std::nullopt);
  EXPECT_TRUE(names_.confirm(sum()));
}

TEST_F(OwnerNamesTest, AreNotKeptByANoteOfAnotherForm) {
  note();
  const std::string text = noted();
  for (const std::string& other : {std::string(), text + "1\n", text.substr(0, text.size() - 1), "0" + text,
                                   text.substr(0, text.rfind(' ')) + " +0\n", std::string(1000, '1')}) {
    std::ofstream(path_ + "/notes/owners.note") << other;
    EXPECT_FALSE(names_.are_kept(folders_)) << other;
  }
  std::ofstream(path_ + "/notes/owners.note") << text;
  EXPECT_TRUE(names_.are_kept(folders_));
}

TEST_F(OwnerNamesTest, AreNotedByAChangeOnceItIsOver) {
  note();
  ASSERT_TRUE(names_.begin_change(folders_, {"a"}));
  write("a");
  ASSERT_TRUE(names_.end_change(folders_));
  EXPECT_FALSE(names_.are_kept(folders_));
  names_.note_change(folders_);
  EXPECT_TRUE(names_.are_kept(folders_));
}

TEST_F(OwnerNamesTest, AreNotedOnceByEachChangeAndLook) {
  note();
  ASSERT_TRUE(names_.begin_change(folders_, {"a"}));
  write("a");
  ASSERT_TRUE(names_.end_change(folders_));
  names_.note_change(folders_);
  const std::string before = noted();
  // Another time, or sum, would be another note.
  write("b");
  EXPECT_FALSE(names_.end_change(folders_));
  names_.note_change(folders_);
  names_.end_look(folders_);
  EXPECT_EQ(noted(), before);
}

TEST_F(OwnerNamesTest, AreNotKeptInAClosedFolder) {
  note();
  const Folder closed = owners_.closed();
  EXPECT_FALSE(names_.are_kept({closed, notes_, path_}));
  EXPECT_FALSE(names_.begin_look({closed, notes_, path_}));
  EXPECT_FALSE(names_.begin_change({closed, notes_, path_}, {"a"}));
}

}  // namespace
}  // namespace numalign
