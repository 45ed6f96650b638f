// A child of a grant: tells where it is by its first line of code, and lives until it is ended.
import { readFileSync } from 'node:fs';

const [, mask] = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
const { env, argv, pid } = process;
process.send({ mask, env, args: argv.slice(2), pid });
process.on('message', (message) => process.send({ heard: message }));
// Its parent may end.
process.on('disconnect', () => {});
setInterval(() => {}, 1 << 30);
