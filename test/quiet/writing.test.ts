// needs: nothing
import { expect, it } from 'vitest';
import type { Setting } from '../../lib/quiet/kernel/setting.js';
import type { Change } from '../../lib/quiet/plan.js';
import { rewrite, writeAll } from '../../lib/quiet/writing.js';

/** Two limits of a CPU's frequency, of which the kernel refuses a least above the most. */
function limits() {
  const now = { least: 2000, most: 3000 };
  const setting = (path: keyof typeof now) =>
    ({
      path,
      read: () => String(now[path]),
      write: (value) => {
        const next = { ...now, [path]: Number(value) };
        if (next.least > next.most) throw Object.assign(new Error(path), { code: 'EINVAL' });
        Object.assign(now, next);
      },
    }) as Setting;
  const change = (path: keyof typeof now, target: string) =>
    ({ setting: setting(path), value: String(now[path]), target }) as Change;
  return { now, changes: [change('least', '800'), change('most', '1000')] };
}

it('what is undone goes back through the values that it came by, the last first', async () => {
  const { now, changes } = limits();
  await writeAll(changes);
  expect(now).toEqual({ least: 800, most: 1000 });
  await rewrite(changes);
  expect(now).toEqual({ least: 2000, most: 3000 });
});
