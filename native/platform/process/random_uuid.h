// Random UUIDs (RFC 9562, version 4) from the kernel's generator (getrandom(2)), which needs no file.
// Thread-safety: any thread.
#pragma once

#include <string>

#include "core/result.h"

namespace numalign {

Result<std::string> random_uuid();

}  // namespace numalign
