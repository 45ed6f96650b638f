// Inotify: what the kernel says of folders and files (inotify(7)). Used on one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

struct FolderEvent {
  int watch;      // as add() has answered
  uint32_t mask;  // IN_...; IN_Q_OVERFLOW with watch -1: events were lost
  std::string name;
};

class Inotify {
 public:
  // EMFILE where the user has as many instances as fs.inotify.max_user_instances allows.
  static Result<Inotify> open();
  // Watches a folder or file for the events of `mask`, which has the flags of inotify_add_watch(2) too.
  // ENOSPC at fs.inotify.max_user_watches.
  Result<int> add(const std::string& path, uint32_t mask);
  // Ends a watch; nothing where it has ended with its folder. Its last event is IN_IGNORED.
  void remove(int watch);
  // What has happened since the last call; never waits.
  Result<std::vector<FolderEvent>> read();
  // Whether read() would answer anything. The kernel has queued an event before it goes on with what the
  // event is about: before the locks of a file that is closed are gone.
  bool has_unread() const;
  // Gives the instance back to the user's account. Nothing else is called from then on.
  void close() { fd_.reset(); }
  // Becomes readable with an event. Owned by this object.
  int fd() const { return fd_.get(); }

 private:
  explicit Inotify(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace numalign
