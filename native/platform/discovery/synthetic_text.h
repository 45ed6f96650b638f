// Refuses synthetic descriptions that hwloc would take literally at any cost: some make it abort
// the process, others make it read beyond its tables. Pure; safe to use from any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace numalign {

// Why hwloc must not get this text, in words; nullopt if it may. hwloc may still refuse it.
std::optional<std::string> check_synthetic(const std::string& text);

// The beginning of a text in quotes, for messages.
std::string excerpt(std::string_view text);

}  // namespace numalign
