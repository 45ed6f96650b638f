// Before each file of the project `machine`, whose tests move threads between CPUs: they have nothing to say where there is one, or only a part of
// the machine's may be used. Loads nothing of the package, which tests may have loaded in their own way.
import { readFileSync } from 'node:fs';
import { beforeEach } from 'vitest';
// @ts-expect-error without declarations
import { parseList } from '../torture/state-file.mjs';

const online: readonly number[] = parseList(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim());
const [, list] = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))!;
const allowed = new Set<number>(parseList(list));

beforeEach(({ skip }) => {
  skip(online.length < 2, 'needs two CPUs');
  skip(
    online.some((cpu) => !allowed.has(cpu)),
    `needs all CPUs of the machine, and may use ${list} only`,
  );
});
