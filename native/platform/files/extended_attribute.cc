#include "platform/files/extended_attribute.h"

#include <sys/xattr.h>

namespace numalign {

Result<std::optional<std::string>> extended_attribute(const std::string& path, const std::string& name) {
  char value[256];
  ssize_t length = getxattr(path.c_str(), name.c_str(), value, sizeof value);
  if (length >= 0) return std::optional(std::string(value, static_cast<size_t>(length)));
  if (errno == ENODATA || errno == ENOTSUP) return std::optional<std::string>();
  return syscall_error("getxattr", "cannot read the attribute " + name + " of " + path);
}

}  // namespace numalign
