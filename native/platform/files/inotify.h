// Inotify: kernel events of folders and files (inotify(7)). Used on one thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/result.h"
#include "platform/files/unique_fd.h"
#include "platform/syscall.h"

namespace numalign {

struct FolderEvent {
  int watch;      // a result of add()
  uint32_t mask;  // IN_...; IN_Q_OVERFLOW with watch -1: events were lost
  std::string name;
};

class Inotify {
 public:
  // EMFILE if the user has as many instances as fs.inotify.max_user_instances allows. Waits for those
  // that this process is closing.
  static Result<Inotify> open();
  // Watches a folder or file for the events of `mask`, which may have flags of
  // inotify_add_watch(2). With IN_MASK_ADD it is the one that the path leads to, also if that is replaced
  // meanwhile. ENOSPC at fs.inotify.max_user_watches; EAGAIN if the path leads to another file at each look.
  Result<int> add(const std::string& path, uint32_t mask);
  // Ends a watch; does nothing if it has ended with its folder. Its last event is IN_IGNORED.
  void remove(int watch);
  // The events since the last call; never waits.
  Result<std::vector<FolderEvent>> read();
  // True if read() would return events. The kernel queues an event before it finishes the
  // operation: the close event of a file comes before the release of its locks.
  bool has_unread() const;
  // The last call on this object. Does not wait for the kernel, which takes 10 to 20 ms to be sure that
  // nothing on the machine still uses the watches: a thread of its own does. Any thread may be last.
  void close();
  // Becomes readable with an event. Owned by this object.
  int fd() const { return fd_.get(); }

 private:
  explicit Inotify(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::unordered_set<int> watches_;  // that add() has returned and that have not ended
};

}  // namespace numalign
