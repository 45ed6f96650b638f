// Extended attributes of files, with which systemd marks delegated cgroups. Thread-safety: any
// thread.
#pragma once

#include <optional>
#include <string>

#include "platform/syscall.h"

namespace numalign {

// getxattr(2). nullopt if the file has no such attribute, its file system keeps none, or this
// process may not see it, like `trusted.` ones without privileges. ERANGE above 256 bytes.
Result<std::optional<std::string>> extended_attribute(const std::string& path, const std::string& name);

}  // namespace numalign
