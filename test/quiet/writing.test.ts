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

it('what a setting makes of a value is a refusal, with that value', async () => {
  let now = '0-3';
  const rounding = {
    path: '/mask',
    read: () => now,
    write: (value) => {
      now = value === '1' ? '1' : '0-1';
    },
  } as Setting;
  const refusalsOf = async (target: string) => [
    ...(await writeAll([{ setting: rounding, value: now, target } as Change])).values(),
  ];
  expect(await refusalsOf('1')).toEqual([]);
  expect(await refusalsOf('0')).toEqual([{ reason: 'it became 0-1', value: '0-1' }]);
});

it('a setting that has disappeared after it was written has refused nothing', async () => {
  const gone = { path: '/mask', read: () => undefined, write: () => {} } as unknown as Setting;
  expect(await writeAll([{ setting: gone, value: '0', target: '1' } as Change])).toEqual(new Map());
});
