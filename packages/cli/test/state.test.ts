// needs: machine
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { CpuSet, openManager } from 'numalign';
import { formatCpuManagerState } from 'numalign/kubelet';
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { abandonMove, hostOf } from '../../../test/support/moves.mjs';
import { makeNewer } from '../../../test/support/newer-state.js';
import { simulate } from '../../../test/support/simulated.js';
import { decodeMembers, encodeMembers } from '../../../test/torture/state-file.mjs';
import { newFolder, numalign } from './numalign.js';

const NAMES = ['cpu_manager_state', 'memory_manager_state'];

/** A folder whose state has one persistent pod, with the only free CPU of any machine. */
async function stateWithPod() {
  const stateDir = newFolder();
  const manager = await openManager({ stateDir, managedCPUs: '0-1', reservedSystemCPUs: '0' });
  const limits = { cpu: 1, memory: '32Mi' };
  await manager.admit({ uid: 'pod-a', containers: [{ name: 'app', limits }] }, { owner: 'persistent' });
  const files = manager.exportKubelet();
  manager.close();
  return { stateDir, files };
}

/** A folder whose state has no grants yet, and manages the same CPUs. */
async function stateWithout(): Promise<string> {
  const stateDir = newFolder();
  await numalign(['configure', '--managed', '0-1', '--state-dir', stateDir]);
  return stateDir;
}

const filesIn = (folder: string) => ({
  cpuManagerState: readFileSync(join(folder, NAMES[0]!), 'utf8'),
  memoryManagerState: readFileSync(join(folder, NAMES[1]!), 'utf8'),
});

function cpuFile(cpus: string, uid = 'pod-a'): string {
  const entries = new Map([[uid, new Map([['app', CpuSet.parse(cpus)]])]]);
  return formatCpuManagerState({ policyName: 'static', defaultCpuSet: CpuSet.EMPTY, entries });
}

/** A folder whose state has an added, a resized and an ended grant. */
async function stateWithHistory() {
  const stateDir = newFolder();
  const topology = await discover({ synthetic: 'core:8 pu:1' });
  const manager = await openManager({ stateDir, topology });
  await manager.acquire({ cpu: 1, name: 'lasting', owner: 'persistent' });
  const grant = await manager.acquire({ cpu: 1, name: 'growing' });
  await grant.resize({ cpu: 2 });
  await grant.release();
  const generation = manager.generation();
  manager.close();
  return { stateDir, generation, file: join(stateDir, 'state.json') };
}

const shown = (stateDir: string, ...more: string[]) =>
  numalign(['state', 'show', '--state-dir', stateDir, ...more]);

const shownJson = async (stateDir: string) => JSON.parse((await shown(stateDir, '--output', 'json')).stdout);

describe('numalign state show', () => {
  it('has a line for each commit: added, changed and ended grants', async () => {
    const { stateDir } = await stateWithHistory();
    const { stdout, code } = await shown(stateDir);
    expect(stdout).toMatch(/the whole state: 0 grants/);
    const signs = [...stdout.matchAll(/ ([-+~]) (\w+) \(/g)].map(([, sign, name]) => `${sign} ${name}`);
    expect(signs.filter((sign, i) => sign !== signs[i - 1])).toEqual([
      '+ lasting',
      '+ growing',
      '~ growing',
      '- growing',
    ]);
    expect(code).toBe(0);
  });

  it('has the content of every line of the file in JSON, and its place', async () => {
    const { stateDir, file, generation } = await stateWithHistory();
    const journal = await shownJson(stateDir);
    const bytes = readFileSync(file);
    expect(journal).toMatchObject({ file, version: 4, bytes: bytes.length, damage: null });
    expect([journal.generation, journal.highest, journal.copy]).toEqual([generation, generation, generation]);
    for (const { offset, bytes: length, record } of journal.lines)
      expect(record).toEqual(JSON.parse(bytes.toString('utf8', offset, offset + length)));
    expect(journal.lines.at(-1)).toMatchObject({ kind: 'change', generation });
  });

  it('shows at most as many lines as its option says, the last ones', async () => {
    const { stateDir } = await stateWithHistory();
    const { stdout } = await shown(stateDir, '--last', '1');
    expect(stdout).toContain('- growing');
    expect(stdout).not.toContain('lasting');
    expect((await shown(stateDir, '--last', '0')).code).toBe(2);
  });

  it('says what a grant leaves in a move that has begun', async () => {
    const manager = await simulate('core:8 pu:1');
    const { uid } = await manager.acquire({ cpu: 2, name: 'mover' });
    await abandonMove(hostOf(manager), uid, '6-7', true);
    const { stdout } = await shown(manager.stateDir);
    expect(stdout).toContain('CPUs 6-7, to leave 0-1');
  });

  it('shows the good lines of a damaged file and marks the others, and ends with 1', async () => {
    const { stateDir, file } = await stateWithHistory();
    const text = readFileSync(file, 'utf8');
    const lines = text.split('\n');
    lines[2] = lines[2]!.replace('lasting', 'lusting');
    writeFileSync(file, lines.join('\n'));
    const { stdout, code } = await shown(stateDir);
    expect(stdout).toMatch(/DAMAGED, \d+ bytes/);
    expect(stdout).toContain('growing');
    expect(code).toBe(1);
    const kinds = (await shownJson(stateDir)).lines.map(({ kind }: { kind: string }) => kind);
    expect(kinds.filter((kind: string) => kind === 'damaged')).toHaveLength(1);
    expect(kinds[2]).toBe('damaged');
  });

  it('distinguishes an unfinished line from a damaged one', async () => {
    const { stateDir, file } = await stateWithHistory();
    const before = readFileSync(file).length;
    appendFileSync(file, '{"line":"chan');
    const { lines, damage } = await shownJson(stateDir);
    expect(lines.at(-1)).toMatchObject({ kind: 'unfinished', offset: before, bytes: 13, record: null });
    expect(damage).toBeNull();
  });

  it('shows the lines of a newer version as far as they are JSON', async () => {
    const { stateDir } = await stateWithHistory();
    makeNewer(stateDir);
    const { version, lines } = await shownJson(stateDir);
    expect(version).toBe(99);
    expect(lines.every(({ record }: { record: unknown }) => record !== null)).toBe(true);
  });

  it('reports a missing state, and makes none', async () => {
    const stateDir = join(newFolder(), 'none');
    const { stdout, code } = await shown(stateDir);
    expect([stdout, code, existsSync(stateDir)]).toEqual([`no state in ${stateDir}\n`, 0, false]);
  });

  it('steers no terminal through the content of a file', async () => {
    const { stateDir, file } = await stateWithHistory();
    const members = { ...decodeMembers(readFileSync(file)), generation: 99 };
    members.pods[0].name = 'evil\u001b[31m\nname';
    writeFileSync(file, encodeMembers(members));
    const { stdout } = await shown(stateDir);
    expect(stdout).toContain('evil');
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toMatch(/^name/m);
  });
});

describe('numalign state export', () => {
  it('writes both files for their user only, and changes nothing else', async () => {
    const { stateDir, files } = await stateWithPod();
    const folder = join(newFolder(), 'kubelet');
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    const { code, stdout, stderr } = await numalign([
      'state',
      'export',
      '--kubelet',
      folder,
      '--state-dir',
      stateDir,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`${NAMES.map((name) => `${join(folder, name)}\n`).join('')}1 pod, shared pool 0\n`);
    expect(filesIn(folder)).toEqual(files);
    expect(readdirSync(folder).sort()).toEqual(NAMES);
    expect(NAMES.map((name) => statSync(join(folder, name)).mode & 0o7777)).toEqual([0o600, 0o600]);
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
  });

  it('replaces existing files, and does not write through links', async () => {
    const { stateDir, files } = await stateWithPod();
    const folder = newFolder();
    const other = join(newFolder(), 'other');
    writeFileSync(other, 'other');
    symlinkSync(other, join(folder, NAMES[0]!));
    writeFileSync(join(folder, NAMES[1]!), 'old');
    chmodSync(join(folder, NAMES[1]!), 0o644);
    const json = ['--output', 'json'];
    const { stdout } = await numalign([
      'state',
      'export',
      '--kubelet',
      folder,
      '--state-dir',
      stateDir,
      ...json,
    ]);
    expect(JSON.parse(stdout)).toEqual({
      stateDir,
      generation: 2,
      files: NAMES.map((name) => join(folder, name)),
      pods: 1,
      sharedPool: '0',
    });
    expect(filesIn(folder)).toEqual(files);
    expect(readFileSync(other, 'utf8')).toBe('other');
    expect(statSync(join(folder, NAMES[1]!)).mode & 0o777).toBe(0o600);
  });

  it('leaves the old files if one of them cannot be replaced', async () => {
    const { stateDir } = await stateWithPod();
    const folder = newFolder();
    writeFileSync(join(folder, NAMES[0]!), 'old');
    mkdirSync(join(folder, NAMES[1]!));
    const { code, stderr } = await numalign([
      'state',
      'export',
      '--kubelet',
      folder,
      '--state-dir',
      stateDir,
    ]);
    expect(code).toBe(1);
    expect(stderr).toContain('[ERR_SYSCALL]');
    expect(readFileSync(join(folder, NAMES[0]!), 'utf8')).toBe('old');
    expect(readdirSync(folder).sort()).toEqual(NAMES);
  });

  it('writes nothing from a state with unknown grants, nor from a simulated machine', async () => {
    const { stateDir } = await stateWithPod();
    makeNewer(stateDir, true);
    const simulated = newFolder();
    (
      await openManager({ stateDir: simulated, topology: await discover({ synthetic: 'core:2 pu:1' }) })
    ).close();
    const folder = newFolder();
    const exportOf = (dir: string) => numalign(['state', 'export', '--kubelet', folder, '--state-dir', dir]);
    const newer = await exportOf(stateDir);
    expect([newer.code, newer.stdout]).toEqual([1, '']);
    expect(newer.stderr).toContain('[ERR_STATE_VERSION]');
    const other = await exportOf(simulated);
    expect([other.code, other.stdout]).toEqual([1, '']);
    expect(other.stderr).toContain('[ERR_SIMULATED_MACHINE]');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('says what is missing: the parent folder, the state, the option', async () => {
    const { stateDir } = await stateWithPod();
    const nowhere = join(newFolder(), 'a', 'b');
    const above = await numalign(['state', 'export', '--kubelet', nowhere, '--state-dir', stateDir]);
    expect(above.code).toBe(1);
    expect(above.stderr).toMatch(/ENOENT.*\[ERR_SYSCALL\]/);
    const folder = newFolder();
    const none = await numalign(['state', 'export', '--kubelet', folder, '--state-dir', nowhere]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain('[ERR_STATE_FOLDER]');
    expect(readdirSync(folder)).toEqual([]);
    const option = await numalign(['state', 'export', '--state-dir', stateDir]);
    expect(option.code).toBe(2);
    expect(option.stderr).toContain("'--kubelet <dir>' not specified");
    expect((await numalign(['state', 'export', '--kubelet', ''])).code).toBe(2);
    expect((await numalign(['state'])).code).toBe(2);
  });
});

describe('numalign state import', () => {
  const importFrom = (folder: string, stateDir: string, ...more: string[]) =>
    numalign(['state', 'import', '--kubelet', folder, '--state-dir', stateDir, ...more]);

  it('takes over an export, and exports the same again', async () => {
    const { stateDir } = await stateWithPod();
    const [folder, again] = [newFolder(), newFolder()];
    await numalign(['state', 'export', '--kubelet', folder, '--state-dir', stateDir]);
    const other = await stateWithout();
    const { code, stdout } = await importFrom(folder, other);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^pod pod-a\nCONTAINER .*\napp +app +1 +none +any +32 MiB on 0\n\n1 pod taken over, shared pool 0\n$/,
    );
    await numalign(['state', 'export', '--kubelet', again, '--state-dir', other]);
    expect(filesIn(again)).toEqual(filesIn(folder));
    const status = JSON.parse((await numalign(['status', '--state-dir', other, '--output', 'json'])).stdout);
    expect(status.grants).toMatchObject([
      { uid: 'pod-a', cpus: '1', owner: { kind: 'persistent' }, alive: true },
    ]);
    const twice = await importFrom(folder, other);
    expect(twice.code).toBe(1);
    expect(twice.stderr).toContain('[ERR_POD_CONFLICT]');
  });

  it('prints the pods as JSON, also from one file alone', async () => {
    const folder = newFolder();
    writeFileSync(join(folder, NAMES[0]!), cpuFile('1'));
    const { stdout } = await importFrom(folder, await stateWithout(), '--output', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      verified: true,
      pods: [{ uid: 'pod-a', containers: [{ name: 'app', cpus: '1' }] }],
      sharedPool: '0',
    });
  });

  it('reads a file without a checksum only on request, and says so', async () => {
    const [folder, stateDir] = [newFolder(), await stateWithout()];
    // The kubelet v1.37 takes none.
    await numalign(['configure', '--kubelet-version', 'v1.36', '--state-dir', stateDir]);
    writeFileSync(join(folder, NAMES[0]!), cpuFile('1').replace(/,"checksum":\d+/, ''));
    const refused = await importFrom(folder, stateDir);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('no checksum');
    expect(refused.stderr).toContain('[ERR_KUBELET_STATE]');
    const read = await importFrom(folder, stateDir, '--allow-unverified');
    expect(read.code).toBe(0);
    expect(read.stdout).toMatch(/\nunverified: the CPU file has no checksum\n$/);
  });

  it('takes over nothing if it cannot take over everything', async () => {
    const { stateDir } = await stateWithPod();
    const folder = newFolder();
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    writeFileSync(join(folder, NAMES[0]!), cpuFile('1').replace('"1"', '"0"'));
    expect((await importFrom(folder, stateDir)).stderr).toContain('damaged');
    writeFileSync(join(folder, NAMES[0]!), cpuFile('1', 'pod-b'));
    const held = await importFrom(folder, stateDir);
    expect(held.code).toBe(1);
    expect(held.stderr).toMatch(/pod pod-b has CPUs 1, which grant pod-a holds \[ERR_KUBELET_IMPORT\]/);
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
  });

  it('refuses a folder without the files, and files that are no text, and makes no state for them', async () => {
    const stateDir = join(newFolder(), 'state');
    const folder = newFolder();
    const none = await importFrom(folder, stateDir);
    expect(none.code).toBe(1);
    expect(none.stderr).toMatch(
      /has neither cpu_manager_state nor memory_manager_state \[ERR_KUBELET_STATE\]/,
    );
    writeFileSync(join(folder, NAMES[0]!), Buffer.from([0x7b, 0xff]));
    expect((await importFrom(folder, stateDir)).stderr).toContain('not UTF-8 text [ERR_KUBELET_STATE]');
    expect(existsSync(stateDir)).toBe(false);
  });
});
