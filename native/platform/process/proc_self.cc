#include "platform/process/proc_self.h"

#include <unistd.h>

#include <string>
#include <string_view>

#include "platform/threads/affinity.h"

namespace numalign {

bool is_proc_ours() {
  char target[32];
  const ssize_t size = readlink("/proc/self", target, sizeof target);
  return size > 0 && std::string_view(target, static_cast<size_t>(size)) == std::to_string(own_process_id());
}

}  // namespace numalign
