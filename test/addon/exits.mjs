// exits.mjs WHERE FOLDER: calls process.exit(7) in a callback of the addon while all other kinds of
// its work are under way.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { native } from '../../dist-test/lib/base/native.js';

const [where, path] = process.argv.slice(2);
const callbackOf = (kind) => () => {
  if (kind === where) process.exit(7);
};
const lockedBy = (kind) => (_, lock) => {
  callbackOf(kind)();
  lock.release();
};

const folder = native.Folder.open(path, true, 0o700, -1);
const other = native.Folder.open(path, true, 0o700, -1);
const held = native.Folder.open(path, true, 0o700, -1).tryLock('held', '');
const waiting = native.Folder.open(path, true, 0o700, -1);
waiting.waitLock('held', '', lockedBy('never'), () => {});
new native.Inotify(callbackOf('notice')).add(path, 0x100);
folder.waitLock('lock', '', lockedBy('lock'), callbackOf('lock'));
other.waitLock('lock', '', lockedBy('second lock'), callbackOf('second lock'));
writeFileSync(join(path, 'seen'), '');
const written = folder.replaceDurably('file', '', Buffer.from('text'), 0);
Promise.resolve(written).then(callbackOf('written'));
Promise.all(native.probePool(2, 1000)).then(callbackOf('pool'));
setTimeout(callbackOf('timer'), 5);
process.on('exit', () => held.release());
setInterval(() => {}, 1000);
