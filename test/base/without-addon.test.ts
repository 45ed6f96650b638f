// needs: folders
// A program on a system where numalign cannot work. The tests run on Linux only: they set
// `process.platform` to another system's before anything is loaded, which is all that the package
// checks.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const OTHER_SYSTEM = (platform: string) => [
  '--import',
  `data:text/javascript,Object.defineProperty(process, 'platform', { value: '${platform}' })`,
];

interface Program {
  nodeOptions?: readonly string[];
  /** Where `numalign` is found, by its own name. */
  cwd?: string;
  env?: Record<string, string>;
}

/** The lines that a program prints, as JSON. */
function run(text: string, { nodeOptions = OTHER_SYSTEM('darwin'), cwd = ROOT, env }: Program = {}) {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [...nodeOptions, '--input-type=module', '-e', text],
    { cwd, encoding: 'utf8', env: { ...process.env, ...env } },
  );
  const lines = stdout.split('\n').filter(Boolean);
  return { status, stderr, printed: lines.map((line) => JSON.parse(line) as unknown) };
}

/** The package without any addon, and what it depends on. */
function withoutAddon(): string {
  const folder = newFolder();
  const filter = (path: string) => !/\.(map|d\.ts)$/.test(path);
  for (const name of ['dist', 'package.json'])
    cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

const SUPPORT = `
  import { supported } from 'numalign';
  console.log(JSON.stringify([supported.isSupported, supported.reason?.code, supported.reason?.message]));`;

describe('where numalign cannot work', () => {
  it.each(['darwin', 'win32'])('its entries are imported on %s, and `supported` says why not', (platform) => {
    const entries = ['cluster', 'topology', 'kubelet', 'diagnostics', 'tools'];
    const text = entries.map((name) => `import 'numalign/${name}';`).join('\n') + SUPPORT;
    const { printed, status } = run(text, { nodeOptions: OTHER_SYSTEM(platform) });
    expect(printed).toEqual([[false, 'ERR_ADDON_MISSING', expect.stringContaining(platform)]]);
    expect(status).toBe(0);
  });

  it('forks optional workers of a cluster, which run like any process', () => {
    const folder = newFolder();
    const file = join(folder, 'cluster.mjs');
    const entry = pathToFileURL(join(ROOT, 'dist/entries/cluster.js'));
    writeFileSync(
      file,
      `import cluster from '${entry}';
      if (cluster.isPrimary) {
        const { grant, refusal } = await cluster.fork({ optional: true });
        console.log(JSON.stringify([grant, refusal.code]));
        const { code } = await cluster.fork().catch((error) => error);
        console.log(JSON.stringify(code));
      } else {
        console.log(JSON.stringify(process.env.NUMALIGN_GRANT));
        cluster.worker.disconnect();
      }`,
    );
    const program = [...OTHER_SYSTEM('darwin'), file];
    const { stdout, stderr, status } = spawnSync(process.execPath, program, { encoding: 'utf8' });
    const lines = [`[null,"ERR_ADDON_MISSING"]`, `"ERR_ADDON_MISSING"`, '""', ''];
    expect([stdout.split('\n').sort(), stderr, status]).toEqual([lines.sort(), '', 0]);
  });

  it('is supported here, but not on Linux without the addon', () => {
    expect(run(SUPPORT, { nodeOptions: [] }).printed).toEqual([[true, null, null]]);
    const { printed } = run(SUPPORT, { nodeOptions: [], cwd: withoutAddon() });
    expect(printed).toEqual([[false, 'ERR_ADDON_MISSING', expect.stringContaining('npm rebuild numalign')]]);
  });

  it('returns an empty grant from optional calls of pin() and acquire()', () => {
    const { printed } = run(`
      import { openManager, pin } from 'numalign';
      const manager = await openManager({ optional: true });
      const grants = [
        await pin({ cpu: 2, name: 'gateway', optional: true }),
        await manager.acquire({ cpu: 2, name: 'gateway', optional: true }),
      ];
      for (const grant of grants) {
        const { isEmpty, reason, name, cpus, enforcement } = JSON.parse(JSON.stringify(grant));
        console.log(JSON.stringify([isEmpty, reason.code, name, cpus, enforcement]));
      }
      console.log(JSON.stringify(await manager.use({ cpu: 1, optional: true }, (grant) => grant.isEmpty)));`);
    const empty = [true, 'ERR_ADDON_MISSING', 'gateway', '', 'none'];
    expect(printed).toEqual([empty, empty, true]);
  });

  it('refuses requests that are not optional, with the reason', () => {
    const { printed } = run(`
      import { openManager, pin } from 'numalign';
      const manager = await openManager({ optional: true });
      for (const action of [
        () => pin({ cpu: 1 }), () => pin('0'), () => openManager(), () => manager.acquire({ cpu: 1 }),
      ]) {
        try { await action(); } catch ({ code }) { console.log(JSON.stringify(code)); }
      }`);
    expect(printed).toEqual(Array(4).fill('ERR_ADDON_MISSING'));
  });

  it('still refuses mistakes', () => {
    const { printed } = run(`
      import { openManager, pin } from 'numalign';
      const manager = await openManager({ optional: true });
      for (const action of [
        () => pin({ cpu: 0.5, optional: true }), () => pin({ cpus: 1, optional: true }),
        () => manager.acquire({ cpu: 1, optional: 'yes' }), () => openManager({ optinal: true }),
        () => manager.acquire({ cpu: 1, memory: 'much', optional: true }),
      ]) {
        try { await action(); } catch ({ code }) { console.log(JSON.stringify(code)); }
      }`);
    expect(printed).toEqual([...Array(4).fill('ERR_INVALID_OPTION'), 'ERR_INVALID_QUANTITY']);
  });

  it('starts Workers and children of an empty grant like without numalign', () => {
    const { printed } = run(`
      import { once } from 'node:events';
      import { pin } from 'numalign';
      const grant = await pin({ cpu: 1, optional: true });
      const worker = grant.worker("import('node:worker_threads').then(({ parentPort }) => parentPort.postMessage('worker'))", { eval: true });
      console.log(JSON.stringify(await once(worker, 'message')));
      const child = grant.spawn('sh', ['-c', 'echo "[$NUMALIGN_GRANT]"'], { stdio: 'inherit' });
      await once(child, 'exit');
      console.log(JSON.stringify([await grant.release(), grant.isReleased]));`);
    const released = { moved: [], unmovable: [], guaranteed: false };
    expect(printed).toEqual([['worker'], [], [released, true]]);
  });

  it('runs a program under numalign/preload whose CPUs are optional, and says so', () => {
    const text = `
      import { grant, manager } from 'numalign/preload';
      console.log(JSON.stringify([grant.isEmpty, manager === undefined, process.env.NUMALIGN_GRANT ?? null]));`;
    const nodeOptions = [
      ...OTHER_SYSTEM('darwin'),
      '--import',
      pathToFileURL(join(ROOT, 'dist/preload.js')).href,
    ];
    const optional = run(text, { nodeOptions, env: { NUMALIGN_ACQUIRE: '{"cpu": 1, "optional": true}' } });
    expect(optional.printed).toEqual([[true, true, null]]);
    expect(optional.stderr).toMatch(
      /^numalign\/preload: no exclusive CPUs,.*darwin.* \[ERR_ADDON_MISSING\]\n$/,
    );
    const required = run(text, { nodeOptions, env: { NUMALIGN_ACQUIRE: '{"cpu": 1}' } });
    expect(required).toMatchObject({ status: 1, printed: [] });
  });

  it('is installed by its script, which reports the missing parts', () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'scripts'));
    for (const name of ['scripts', 'native/sources.txt', 'package.json'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    const install = [...OTHER_SYSTEM('win32'), join(folder, 'scripts/install.mjs')];
    const { status, stderr } = spawnSync(process.execPath, install, { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, expect.stringMatching(/^numalign install: nothing .*win32.*\n$/)]);
  });
});
