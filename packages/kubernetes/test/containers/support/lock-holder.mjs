// lock-holder.mjs FOLDER: a process that has the lock of the state in a folder, and keeps it.
import { native } from '../../../../../dist-test/lib/base/native.js';
import { lockNote } from '../../../../../dist-test/lib/state/owners/lock-holder.js';

const lock = native.Folder.open(process.argv[2], false, 0o700, -1).tryLock('lock', lockNote());
process.stdout.write(lock ? 'locked\n' : 'not locked\n');
setInterval(() => lock, 1 << 30);
