// needs: machine
// A process that can open few more files, or none. It compares two discoveries: no other test
// reserves hugepages meanwhile.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { makeStateDir } from '../support/state-dir.js';

const file = (path: string) => JSON.stringify(fileURLToPath(new URL(`../../${path}.js`, import.meta.url)));
const entry = (name: string) => file(`dist/${name}`);

// Node itself could open no file of it.
const LOADED = `
    const first = await openManager(settings('first'));
    first.status();
    await (await first.acquire({ cpu: 1 })).release();
    first.close();
`;

/** The results of steps with 0 to 11 files left, as `step: code` or `step: done`. */
function resultsOf(steps: string, before = LOADED): string[] {
  const script = `
    import { closeSync, openSync } from 'node:fs';
    import { openManager } from ${entry('index')};
    import { discover } from ${entry('entries/topology')};
    const results = new Set();
    const held = [];
    const leave = (files) => {
      try { for (;;) held.push(openSync('/dev/null')); } catch {}
      for (let i = 0; i < files; i++) closeSync(held.pop());
    };
    const attempt = async (files, name, step) => {
      leave(files);
      let result;
      try { await step(); result = 'done'; }
      catch (error) { result = error.name === 'NumalignError' ? error.code + ' ' + error.errnoName : String(error.stack); }
      while (held.length > 0) closeSync(held.pop());
      results.add(name + ': ' + result);
      return result === 'done';
    };
    const folder = ${JSON.stringify(makeStateDir())};
    const settings = (files) => ({ stateDir: folder + '/' + files, cgroupRoot: null, sharedMember: false });
    (await import('node:fs')).mkdirSync(folder);
    ${before}
    for (let files = 0; files < 12; files++) {
      ${steps}
    }
    console.log(JSON.stringify([...results].sort()));
  `;
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'ulimit -n 80 && exec "$0" --input-type=module -e "$1"', process.execPath, script],
    { encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  return JSON.parse(stdout) as string[];
}

it('without files left every step is done or refused with the errno, and works later', () => {
  const results = resultsOf(`
    let manager, grant;
    await attempt(files, 'open', async () => (manager = await openManager(settings(files))));
    manager ??= await openManager(settings(files));
    await attempt(files, 'status', () => void manager.status());
    await attempt(files, 'acquire', async () => (grant = await manager.acquire({ cpu: 1 })));
    grant ??= await manager.acquire({ cpu: 1 });
    await attempt(files, 'release', () => grant.release());
    manager.close();
  `);
  expect(results).toEqual([
    'acquire: ERR_SYSCALL EMFILE',
    'acquire: done',
    'open: ERR_SYSCALL EMFILE',
    'open: done',
    'release: done',
    'status: ERR_SYSCALL EMFILE',
    'status: done',
  ]);
});

it('without files left memory is not full, and files are not missing', () => {
  const results = resultsOf(`
    const { textOf } = await import(${file('dist-test/lib/base/errors')});
    const manager = await openManager(settings(files));
    const grant = await manager.acquire({ cpu: 1 });
    await attempt(files, 'buffer', () => grant.buffer('4Ki'));
    await attempt(files, 'text', () => results.add('text: ' + typeof textOf('/proc/self/comm')));
    await grant.release();
    manager.close();
  `);
  expect(results).toEqual([
    'buffer: ERR_SYSCALL EMFILE',
    'buffer: done',
    'text: ERR_SYSCALL EMFILE',
    'text: done',
    'text: string',
  ]);
});

it('without files left this machine is not another one', () => {
  const results = resultsOf(`
    let machine;
    const before = JSON.stringify(await discover());
    if (await attempt(files, 'discover', async () => (machine = await discover()))) {
      if (JSON.stringify(machine) !== before) results.add('another machine');
    }
  `);
  expect(results).toEqual(['discover: ERR_SYSCALL EMFILE', 'discover: done']);
});

it('without files left at first a manager opens once there are some', () => {
  const results = resultsOf(
    "const open = () => openManager(settings(files)); await attempt(files, 'open', open);",
    '',
  );
  expect(results).toEqual(['open: ERR_SYSCALL EMFILE', 'open: done']);
});
