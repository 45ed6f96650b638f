// The journal of a state folder: see platform/files/journal_file.h.
#pragma once

#include <napi.h>

#include "platform/files/folder.h"
#include "platform/files/journal_file.h"

namespace numalign::addon {

// The JavaScript object of an open journal.
Napi::Value make_journal(Napi::Env env, JournalFile file);
// The file of such an object, while that is open.
const JournalFile& to_journal(const Napi::Value& value);
// See JournalWitness::note().
FileVersion note_version(const Napi::Value& journal, const FileVersion& version);
// A text that differs for every version of a file: its inode, size and modification time.
Napi::Value from_version(Napi::Env env, const FileVersion& version);

}  // namespace numalign::addon
