// Extended attributes of files: how systemd marks the cgroups that it has delegated. Thread-safety: any
// thread.
#pragma once

#include <optional>
#include <string>

#include "platform/syscall.h"

namespace numalign {

// getxattr(2). Nothing where the file has no such attribute, its file system keeps none, or it is hidden from
// this process, as `trusted.` ones are from an unprivileged one. ERANGE above 256 bytes.
Result<std::optional<std::string>> extended_attribute(const std::string& path, const std::string& name);

}  // namespace numalign
