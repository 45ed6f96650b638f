// needs: restores
// A damaged state: what is recovered, by which process, and what is never granted meanwhile.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { kubeletCpus } from '../../lib/account/kubelet-record.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { NumalignError } from '../../lib/base/errors.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager } from '../../lib/index.js';
import type { UnknownOwner } from '../../lib/state/files/owner-claims.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../lib/state/format/journal.js';
import { decodeOwnerFile, encodeOwnerFile, type OwnerFile } from '../../lib/state/format/owner-file.js';
import { Ledger } from '../../lib/state/ledger.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { makeStateDir } from '../support/state-dir.js';
import { stateBefore } from '../support/state-text.js';
import { AGENT, canBeStranger, forStrangers } from '../support/strangers.js';

const MACHINE = 'numa:2(memory=8GiB) core:8 pu:1';
const STATE = 'state.json';
const COPY = 'state.copy.json';

const machine = (): Promise<Topology> => discover({ synthetic: MACHINE });

async function open(stateDir: string): Promise<Manager> {
  const manager = await openManager({ topology: await machine(), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

/** The folder as a new process finds it: owner files are the same ones, with their locks. */
function copyOf(stateDir: string): string {
  const copy = mkdtempSync(join(stateDir, '../../numalign-test-'));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  mkdirSync(join(copy, 'owners'));
  for (const name of [STATE, COPY, 'lock']) copyFileSync(join(stateDir, name), join(copy, name));
  for (const name of readdirSync(join(stateDir, 'owners'))) {
    linkSync(join(stateDir, 'owners', name), join(copy, 'owners', name));
  }
  return copy;
}

function replaceBy(file: string, make: () => void): void {
  unlinkSync(file);
  make();
}

const holdings = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus, memory }) => [name, [String(cpus), memory]]));

const recoveriesOf = (manager: Manager) => Ledger.open(manager.stateDir).recoveries;
const fileOf = (stateDir: string, name = STATE) => decodeCheckpoint(readFileSync(join(stateDir, name)));

/**
 * Grants of this process, a persistent one, and a released one; `last` says which of them came
 * last.
 */
async function lived(last: 'added' | 'released', fileSystem = '/dev/shm') {
  const stateDir = makeStateDir(fileSystem);
  const manager = await open(stateDir);
  const released = await manager.acquire({ cpu: 3, owner: 'persistent', name: 'gone' });
  await manager.acquire({ cpu: 2, owner: 'persistent', name: 'lasting', memory: '1Gi' });
  if (last === 'added') await released.release();
  await manager.acquire({ cpu: 2, name: 'living', memory: '2Gi' });
  if (last === 'released') await released.release();
  return { manager, stateDir, held: holdings(manager) };
}

async function expectNoDoubleGrant(manager: Manager, held: object): Promise<void> {
  expect(holdings(manager)).toEqual(held);
  const [first, second] = manager.grants();
  const grant = await manager.acquire({ cpu: manager.freeCpus().size - 1, owner: 'persistent' });
  expect(grant.cpus.intersects(first!.cpus.union(second!.cpus))).toBe(false);
}

// Samples, to save time; a long run covers the first completely. Not the second: a folder stays
// open for the life of the process, which may open only so many files.
describe.each([
  ['added', budget({ all: 1, usual: 61 })],
  ['released', budget({ all: 9, usual: 121 })],
] as const)('a state file whose last step %s a grant', (last, stride) => {
  async function tryAll(damage: (file: Buffer) => Iterable<Buffer>): Promise<number> {
    const { stateDir, held } = await lived(last);
    const copy = copyOf(stateDir);
    let tried = 0;
    for (const file of damage(readFileSync(join(copy, STATE)))) {
      const fresh = copyOf(stateDir);
      writeFileSync(join(fresh, STATE), file);
      const manager = await openManager({ topology: TOPOLOGY, stateDir: fresh });
      await expectNoDoubleGrant(manager, held);
      expect(recoveriesOf(manager)).toMatchObject([{ code: 'STATE_RECOVERED', kept: expect.any(Array) }]);
      manager.close();
      rmSync(fresh, { recursive: true });
      tried++;
    }
    return tried;
  }
  let TOPOLOGY: Topology;

  it('with any byte flipped leads to the grants of living owners, and nothing else', async () => {
    TOPOLOGY = await machine();
    const tried = await tryAll(function* (file) {
      for (let at = 0; at < file.length; at += stride) {
        const damaged = Buffer.from(file);
        damaged[at]! ^= 1 << (at % 8);
        yield damaged;
      }
    });
    expect(tried).toBeGreaterThan(1000 / stride);
  });

  it('cut short anywhere leads to the grants of living owners, and nothing else', async () => {
    TOPOLOGY = await machine();
    await tryAll(function* (file) {
      for (let length = 0; length < file.length; length += stride) yield file.subarray(0, length);
    });
  });
});

describe('a state', () => {
  const damages: [string, (file: string) => void][] = [
    ['gone', (file) => unlinkSync(file)],
    ['empty', (file) => writeFileSync(file, '')],
    ['another program’s', (file) => writeFileSync(file, '{"policyName":"static","defaultCpuSet":"0-15"}')],
    ['a link', (file) => replaceBy(file, () => symlinkSync('/etc/passwd', file))],
    ['a folder', (file) => replaceBy(file, () => mkdirSync(join(file, 'x'), { recursive: true }))],
    ['far too large', (file) => truncateSync(file, 257 << 20)],
  ];

  it.each(damages)(
    'that is %s is quarantined, recovered, and good for both generations',
    async (_, damage) => {
      const { stateDir, held } = await lived('added');
      const before = fileOf(stateDir).generation;
      const copy = copyOf(stateDir);
      damage(join(copy, STATE));
      const manager = await open(copy);
      await expectNoDoubleGrant(manager, held);
      expect(manager.generation()).toBeGreaterThan(before);
      expect(fileOf(copy, COPY)).toEqual(fileOf(copy));
      const [recovery] = recoveriesOf(manager);
      const isThere = existsSync(join(copy, 'quarantine')) ? readdirSync(join(copy, 'quarantine')) : [];
      expect(recovery!.quarantined).toEqual(isThere);
      expect(isThere).toHaveLength(_ === 'gone' ? 0 : 1);
    },
  );

  it.each(damages)(
    'with both files %s comes back from the owners’ files, with its settings',
    async (_, damage) => {
      const { stateDir, held, manager: first } = await lived('added');
      await first.configure({ reservedSystemCPUs: '15' });
      const copy = copyOf(stateDir);
      // The owner files are rewritten before the next grant.
      await first.use({ cpu: 1 }, () => {});
      damage(join(copy, STATE));
      damage(join(copy, COPY));
      const manager = await open(copy);
      expect(holdings(manager)).toEqual(held);
      expect(String(manager.settings().reservedSystemCPUs)).toBe('15');
      expect(manager.generation()).toBeGreaterThan(fileOf(stateDir).generation - 2);
    },
  );

  it('of which nothing is left begins again, and the damaged files are kept aside', async () => {
    const stateDir = makeStateDir();
    await (await open(stateDir)).use({ cpu: 1, owner: 'persistent' }, () => {});
    const copy = copyOf(stateDir);
    for (const name of [STATE, COPY]) writeFileSync(join(copy, name), 'nonsense');
    for (const name of readdirSync(join(copy, 'owners'))) unlinkSync(join(copy, 'owners', name));
    const manager = await open(copy);
    expect(manager.grants()).toEqual([]);
    expect(readdirSync(join(copy, 'quarantine'))).toHaveLength(2);
  });

  it('is not rewritten by processes that only read', async () => {
    const { stateDir, held } = await lived('added');
    const copy = copyOf(stateDir);
    const manager = await open(copy);
    writeFileSync(join(copy, STATE), 'nonsense');
    expect(holdings(manager)).toEqual(held);
    expect(readFileSync(join(copy, STATE), 'utf8')).toBe('nonsense');
    expect(existsSync(join(copy, 'quarantine'))).toBe(false);
    await manager.configure({});
    expect(readdirSync(join(copy, 'quarantine'))).toHaveLength(1);
    expect(holdings(manager)).toEqual(held);
  });

  it('does not go back to an earlier generation, though that file is whole', async () => {
    const { stateDir, held, manager } = await lived('added');
    const generation = manager.generation();
    writeFileSync(join(stateDir, STATE), stateBefore(stateDir));
    expect(holdings(manager)).toEqual(held);
    await manager.use({ cpu: 1 }, () => {});
    expect(holdings(manager)).toEqual(held);
    expect(manager.generation()).toBeGreaterThan(generation);
    expect(recoveriesOf(manager)).toMatchObject([
      { message: expect.stringContaining('older than generation') },
    ]);
  });

  it('forgets grants whose owners died with it, and keeps those of living processes', async () => {
    const stateDir = makeStateDir();
    const first = await openManager({ stateDir });
    const options = { stateDir };
    const [dying, living] = [new Agent(), new Agent()];
    await dying.tell('open', options);
    await living.tell('open', options);
    if (first.freeCpus().size < 2) return;
    const kept = await living.tell('acquire', { cpu: 1, name: 'kept' });
    await dying.kill();
    writeFileSync(join(stateDir, STATE), 'nonsense');
    writeFileSync(join(stateDir, COPY), 'nonsense');
    const rival = new Agent();
    await rival.tell('open', options);
    expect(
      (await rival.tell('grants')).map(({ uid, alive }: { uid: string; alive: boolean }) => [uid, alive]),
    ).toEqual([[kept.uid, true]]);
    await living.tell('release', { uid: kept.uid });
    expect(await rival.tell('grants')).toEqual([]);
    expect(first.grants()).toEqual([]);
  });

  it('is archived as usual if it is of an earlier boot, and persistent grants do not come back', async () => {
    // Memory does not outlive a boot.
    const { stateDir } = await lived('added', tmpdir());
    const copy = copyOf(stateDir);
    for (const name of [STATE, COPY]) {
      writeFileSync(join(copy, name), encodeCheckpoint({ ...fileOf(copy, name), bootId: 'another-boot' }));
    }
    for (const name of readdirSync(join(copy, 'owners'))) {
      const file = decodeOwnerFile(readFileSync(join(copy, 'owners', name)));
      unlinkSync(join(copy, 'owners', name));
      writeFileSync(join(copy, 'owners', name), encodeOwnerFile({ ...file, bootId: 'another-boot' }));
    }
    writeFileSync(join(copy, STATE), 'nonsense');
    const manager = await open(copy);
    expect(manager.grants()).toEqual([]);
    const [archived] = readdirSync(join(copy, 'archive'));
    const { assignments } = decodeCheckpoint(readFileSync(join(copy, 'archive', archived!)));
    expect(assignments.pods.map(({ name }) => name)).toEqual(['lasting', 'living']);
  });

  it.runIf(canBeStranger)('that its own user cannot read is damaged', async () => {
    const stateDir = makeStateDir();
    // Root reads everything; without that right it still owns the folder.
    const powerless = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all'];
    const agent = new Agent(powerless, forStrangers(AGENT));
    await agent.tell('open', { stateDir });
    chmodSync(join(stateDir, STATE), 0);
    const next = new Agent(powerless, forStrangers(AGENT));
    await next.tell('open', { stateDir });
    expect(readdirSync(join(stateDir, 'quarantine'))).toHaveLength(1);
  });

  it('can be committed though folders stand where it puts its files', async () => {
    const { stateDir, manager } = await lived('added');
    for (const name of ['state.json.new', 'state.copy.json.new']) {
      rmSync(join(stateDir, name), { force: true });
      mkdirSync(join(stateDir, name));
    }
    // The files are written whole if there are none.
    for (const name of [STATE, COPY]) unlinkSync(join(stateDir, name));
    await manager.use({ cpu: 1 }, () => {});
    expect(readdirSync(join(stateDir, 'quarantine'))).toHaveLength(2);
    expect(fileOf(stateDir, COPY)).toEqual(fileOf(stateDir));
  });
});

describe('a living owner whose file cannot be read', () => {
  async function damagedOwner() {
    const { stateDir, manager, held } = await lived('added');
    const living = manager.grants().find(({ name }) => name === 'living')!;
    const { uuid } = fileOf(stateDir).assignments.pods.find(({ uid }) => uid === living.uid)!.owner;
    return { stateDir, manager, held, uuid, path: join(stateDir, 'owners', uuid) };
  }

  /** Its process is stopped, so that it does not rewrite it. */
  async function stoppedOwner() {
    const stateDir = makeStateDir('/dev/shm');
    const manager = await open(stateDir);
    await manager.acquire({ cpu: 2, owner: 'persistent', name: 'lasting', memory: '1Gi' });
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: MACHINE });
    const { uid } = await agent.tell('acquire', { cpu: 2, name: 'living', memory: '2Gi' });
    agent.process.kill('SIGSTOP');
    const { uuid } = fileOf(stateDir).assignments.pods.find((pod) => pod.uid === uid)!.owner;
    return { stateDir, uuid, path: join(stateDir, 'owners', uuid) };
  }

  it('does no harm while the state is good, and its file is repaired with its next grant', async () => {
    const { stateDir, manager, path } = await damagedOwner();
    writeFileSync(path, 'torn');
    const other = await open(copyOf(stateDir));
    await other.acquire({ cpu: 1, owner: 'persistent' });
    await manager.acquire({ cpu: 1, name: 'next' });
    expect(decodeOwnerFile(readFileSync(path)).pods.map(({ name }) => name)).toEqual(['living', 'next']);
  });

  it('blocks all grants once the state is damaged too, whatever is wrong with it; opening and reading work', async () => {
    const { stateDir, uuid, path } = await stoppedOwner();
    const good = readFileSync(path);
    const topology = await machine();
    for (let at = 0; at < good.length; at += budget({ all: 193, usual: 1200 })) {
      const damaged = Buffer.from(good);
      damaged[at]! ^= 1 << (at % 8);
      const copy = copyOf(stateDir);
      for (const name of [STATE, COPY]) writeFileSync(join(copy, name), 'nonsense');
      writeFileSync(path, damaged);
      const manager = await openManager({ topology, stateDir: copy });
      // It came with the lost generation, so that it is unknown.
      expect(Object.keys(holdings(manager))).toEqual(['lasting']);
      const error = await errorOf(() => manager.acquire({ cpu: 1 }));
      expect([error.code, error.details.value]).toEqual(['ERR_STATE_CORRUPT', `owners/${uuid}`]);
      expect(readFileSync(join(copy, STATE), 'utf8')).toBe('nonsense');
      writeFileSync(path, good);
      await (await manager.acquire({ cpu: 1, owner: 'persistent' })).release();
      expect(Object.keys(holdings(manager))).toEqual(['lasting', 'living']);
      manager.close();
      rmSync(copy, { recursive: true });
    }
  });

  it('blocks all grants if the file is another owner’s', async () => {
    const { stateDir, uuid, path } = await stoppedOwner();
    const [other] = readdirSync(join(stateDir, 'owners')).filter((name) => name !== uuid);
    const copy = copyOf(stateDir);
    const manager = await open(copy);
    writeFileSync(join(copy, STATE), 'nonsense');
    writeFileSync(path, readFileSync(join(stateDir, 'owners', other!)));
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect([error.code, error.details.value]).toEqual(['ERR_STATE_CORRUPT', `owners/${uuid}`]);
  });

  it('keeps everything unchanged until its grants are known', async () => {
    const { stateDir, path } = await stoppedOwner();
    const good = readFileSync(path);
    const copy = copyOf(stateDir);
    const manager = await open(copy);
    const mine = await manager.acquire({ cpu: 4, name: 'mine' });
    writeFileSync(join(copy, STATE), 'nonsense');
    writeFileSync(path, 'torn');
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).code).toBe('ERR_STATE_CORRUPT');
    // Where threads that leave its CPUs could go is unknown.
    expect((await errorOf(() => mine.release())).code).toBe('ERR_STATE_CORRUPT');
    expect(() => manager.sharedPool()).toThrow(expect.objectContaining({ code: 'ERR_STATE_CORRUPT' }));
    expect(() => manager.freeCpus()).toThrow(expect.objectContaining({ code: 'ERR_STATE_CORRUPT' }));
    writeFileSync(path, good);
    await manager.configure({});
    expect(Object.keys(holdings(manager)).sort()).toEqual(['lasting', 'living', 'mine']);
    await mine.release();
    expect(Object.keys(holdings(manager))).toEqual(['lasting', 'living']);
  });
});

describe('an owner’s file', () => {
  it('exists for each owner, agrees with the state, and ends with the grant', async () => {
    const { stateDir, manager } = await lived('added');
    const files = () =>
      readdirSync(join(stateDir, 'owners')).map((name) =>
        decodeOwnerFile(readFileSync(join(stateDir, 'owners', name))),
      );
    const { pods } = fileOf(stateDir).assignments;
    expect(files().map(({ kind, pods }) => [kind, pods.map(({ name }) => name)])).toEqual(
      expect.arrayContaining([
        ['process', ['living']],
        ['persistent', ['lasting']],
      ]),
    );
    for (const file of files()) {
      expect(file.generation).toBeLessThan(fileOf(stateDir).generation);
      expect(file.pods).toEqual(pods.filter(({ owner }) => owner.uuid === file.uuid));
    }
    for (const { uid } of manager.grants()) await manager.release(uid);
    expect(files().map(({ kind, pods }) => [kind, pods])).toEqual([['process', []]]);
  });

  it('that a crash left behind is removed by the next transaction, and a removed one is restored', async () => {
    const { stateDir } = await lived('added');
    const owners = join(stateDir, 'owners');
    const [lasting] = fileOf(stateDir).assignments.pods;
    const left = '12345678-1234-4234-8234-123456789abc';
    const file = decodeOwnerFile(readFileSync(join(owners, lasting!.owner.uuid)));
    writeFileSync(join(owners, left), encodeOwnerFile({ ...file, uuid: left, pods: [] }));
    writeFileSync(join(owners, `${left}.new`), 'half of it');
    writeFileSync(join(owners, 'README'), 'not ours');
    unlinkSync(join(owners, lasting!.owner.uuid));
    // A new process checks all of them; others do from time to time.
    const agent = new Agent();
    await agent.tell('open', { stateDir, simulate: MACHINE });
    expect(readdirSync(owners).sort()).toEqual(
      [...fileOf(stateDir).assignments.pods.map(({ owner }) => owner.uuid), 'README'].sort(),
    );
  });

  it('keeps its claims if a recovered state could not be committed', async () => {
    const { stateDir, manager, held } = await lived('added');
    for (const name of [STATE, COPY]) unlinkSync(join(stateDir, name));
    // The new state is written there first, and the obstacle cannot be moved there.
    mkdirSync(join(stateDir, 'state.json.new'));
    writeFileSync(join(stateDir, 'quarantine'), '');
    const claims = () =>
      readdirSync(join(stateDir, 'owners')).flatMap((name) =>
        decodeOwnerFile(readFileSync(join(stateDir, 'owners', name))).pods.map((pod) => pod.name),
      );
    expect((await errorOf(() => manager.configure({}))).code).toBe('ERR_STATE_FOLDER');
    expect(claims().sort()).toEqual(['lasting', 'living']);
    rmdirSync(join(stateDir, 'state.json.new'));
    unlinkSync(join(stateDir, 'quarantine'));
    await expectNoDoubleGrant(manager, held);
  });

  it('claims nothing that could not be committed', async () => {
    const { stateDir, manager } = await lived('added');
    const names = () =>
      readdirSync(join(stateDir, 'owners')).flatMap((name) =>
        decodeOwnerFile(readFileSync(join(stateDir, 'owners', name))).pods.map((pod) => pod.name),
      );
    const repair = breakCommits(stateDir);
    const errors = [
      await errorOf(() => manager.acquire({ cpu: 1, name: 'own' })),
      await errorOf(() => manager.acquire({ cpu: 1, owner: 'persistent' })),
    ];
    repair();
    expect(errors.map(({ code, errnoName }) => [code, errnoName])).toEqual([
      ['ERR_SYSCALL', 'EFBIG'],
      ['ERR_SYSCALL', 'EFBIG'],
    ]);
    expect(names().sort()).toEqual(['lasting', 'living']);
  });
});

describe('claims', () => {
  const pod = (name: string, uuid: string, cpus: string, memory = 0): PodAssignment => ({
    uid: name,
    name,
    containers: [
      {
        name: 'main',
        kind: 'app',
        started: true,
        request: {},
        isolation: cpus === '' ? 'host' : 'container',
        cpus: CpuSet.parse(cpus),
        held: CpuSet.EMPTY,
        hint: { nodes: null, preferred: true },
        memory: memory > 0 ? [{ nodes: [0, 1], type: 'memory', bytes: memory }] : [],
        devices: {},
        reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
        unknown: {},
      },
    ],
    booking: null,
    policy: 'none',
    scope: 'container',
    options: {},
    owner: { kind: 'process', uuid, pid: 1, command: null, cgroup: null, unknown: {} },
    enforcement: { level: 'recorded', target: null },
    upcoming: null,
    transfer: null,
    formerOwner: null,
    admittedAt: '2026-01-01T00:00:00.000Z',
    unknown: {},
  });

  type File = [generation: number, uuid: string, pods: PodAssignment[] | 'unreadable'];

  it('to the kubelet’s CPUs follow its living keeper, from the recorded generation on', async () => {
    const { rebuild } = await import('../../lib/state/owners/recovery.js');
    const stateDir = makeStateDir();
    await open(stateDir);
    const { assignments } = fileOf(stateDir);
    const { settings } = assignments;
    const kubeletAfter = (recorded: string | null, ...files: [generation: number, cpus: string | null][]) => {
      const of = (cpus: string | null) => (cpus === null ? null : kubeletRecord(cpus));
      const base = recorded === 'lost' ? undefined : { ...assignments, kubelet: of(recorded) };
      const living = files.map(([generation, cpus], i): OwnerFile => {
        const header = { uuid: `${i}`, kind: 'process', pid: 1, command: null, cgroup: null } as const;
        return { ...header, bootId: 'boot', generation, settings, kubelet: of(cpus), pods: [] };
      });
      const missing = { kind: 'missing' } as const;
      const clues = {
        ...{ found: missing, previous: missing, highest: 0 },
        base: base && { generation: 7, bootId: 'boot', writtenAt: '2026-01-01', assignments: base },
        owners: { living, unknown: [], latest: living[0] },
      };
      return String(kubeletCpus(rebuild(clues, 'boot', () => 10)!.assignments.kubelet));
    };
    expect(kubeletAfter('1', [7, '2'])).toBe('2');
    expect(kubeletAfter('1', [6, '2'])).toBe('1');
    expect(kubeletAfter(null, [8, '2'])).toBe('2');
    expect(kubeletAfter(null, [6, '2'])).toBe('');
    expect(kubeletAfter('1', [9, null])).toBe('1');
    expect(kubeletAfter('1', [8, '2'], [9, '3'], [10, null])).toBe('3');
    expect(kubeletAfter('1')).toBe('1');
    expect(kubeletAfter('lost', [3, '2'])).toBe('2');
  });

  async function rebuilt(generation: number, recorded: PodAssignment[], ...files: File[]) {
    const { rebuild } = await import('../../lib/state/owners/recovery.js');
    const stateDir = makeStateDir();
    await open(stateDir);
    const { assignments, ...header } = fileOf(stateDir);
    const base: Checkpoint = {
      ...header,
      generation,
      bootId: 'boot',
      assignments: { ...assignments, pods: recorded },
    };
    const living: OwnerFile[] = [];
    const unknown: UnknownOwner[] = [];
    for (const [written, uuid, pods] of files) {
      if (pods === 'unreadable') {
        unknown.push({
          uuid,
          isFileLost: false,
          since: 0,
          error: new NumalignError('ERR_STATE_CORRUPT', uuid),
        });
        continue;
      }
      living.push({
        ...{ uuid, kind: 'process', pid: 1, command: null, cgroup: null, bootId: 'boot' },
        ...{ generation: written, settings: assignments.settings, kubelet: null, pods },
      });
    }
    const owners = { living, unknown, latest: undefined };
    const missing = { kind: 'missing' } as const;
    const clues = { found: missing, previous: missing, base, owners, highest: 0 };
    const { assignments: next, refusal } = rebuild(clues, 'boot', () => 10)!;
    const pods = next.pods.map(({ name, owner }) => `${name}@${owner.uuid}`);
    return {
      pods,
      formerOwners: next.pods.map(({ formerOwner }) => formerOwner),
      memory: next.memory,
      refusal,
    };
  }

  it('of earlier generations that are not on record have no effect', async () => {
    expect((await rebuilt(7, [], [6, 'a', [pod('x', 'a', '1')]])).pods).toEqual([]);
    expect((await rebuilt(7, [], [7, 'a', [pod('x', 'a', '1')]])).pods).toEqual(['x@a']);
    expect((await rebuilt(7, [pod('x', 'a', '1')], [3, 'a', [pod('x', 'a', '1')]])).pods).toEqual(['x@a']);
    expect((await rebuilt(7, [pod('x', 'a', '1')], [7, 'a', []])).pods).toEqual([]);
  });

  it('to one grant follow the generation, and within one generation the process that takes it over', async () => {
    const [x, y] = [pod('x', 'a', '1'), pod('x', 'b', '1')];
    expect((await rebuilt(7, [x], [7, 'a', [x]], [8, 'b', [y]])).pods).toEqual(['x@b']);
    expect((await rebuilt(7, [x], [8, 'a', [x]], [7, 'b', [y]])).pods).toEqual(['x@a']);
    expect((await rebuilt(7, [x], [7, 'a', [x]], [7, 'b', [y]])).pods).toEqual(['x@b']);
    expect((await rebuilt(7, [], [7, 'a', [x]], [7, 'b', [y]])).refusal?.details.value).toEqual([
      'owners/a',
      'owners/b',
    ]);
  });

  it('of a process whose threads have not left yet keep the CPUs that its dead successor took over', async () => {
    const taken = { ...pod('x', 'b', '1'), formerOwner: 'a' };
    expect((await rebuilt(7, [taken], [7, 'a', [taken]])).pods).toEqual(['x@b']);
    // The lost change is the takeover.
    expect((await rebuilt(7, [pod('x', 'a', '1')], [6, 'a', [pod('x', 'a', '1')]])).pods).toEqual(['x@a']);
    expect((await rebuilt(7, [pod('x', 'a', '1')], [8, 'a', [taken]])).pods).toEqual(['x@b']);
    expect((await rebuilt(7, [taken])).pods).toEqual([]);
  });

  it('that were handed over wait until the predecessor’s file has dropped them', async () => {
    const taken = { ...pod('x', 'b', '1'), formerOwner: 'a' };
    const other = pod('y', 'a', '2');
    const formerOwners = async (...had: PodAssignment[]) =>
      (await rebuilt(7, [taken, other], [7, 'b', [taken]], [7, 'a', had])).formerOwners;
    expect(await formerOwners(pod('x', 'a', '1'), other)).toEqual(['a', null]);
    expect(await formerOwners(other)).toEqual([null, null]);
  });

  it('stay as recorded if the file of the owner, or of its predecessor, cannot be read', async () => {
    const taken = { ...pod('x', 'b', '1'), formerOwner: 'a' };
    for (const uuid of ['a', 'b']) {
      const { pods, refusal } = await rebuilt(7, [taken, pod('y', 'c', '2')], [7, uuid, 'unreadable']);
      expect([pods, refusal?.message]).toEqual([['x@b'], uuid]);
    }
    expect((await rebuilt(7, [taken], [7, 'c', 'unreadable'])).pods).toEqual([]);
  });

  it('that clash grant nothing', async () => {
    const { refusal } = await rebuilt(
      7,
      [],
      [7, 'a', [pod('x', 'a', '1-2')]],
      [8, 'b', [pod('y', 'b', '2-3')]],
    );
    expect(refusal).toMatchObject({ code: 'ERR_STATE_CORRUPT', message: expect.stringContaining('CPU 2') });
  });

  it('to memory are booked in full, with or without room', async () => {
    const { memory, refusal } = await rebuilt(
      7,
      [],
      [7, 'a', [pod('x', 'a', '1', 15), pod('y', 'a', '2', 9)]],
    );
    expect(refusal).toBeUndefined();
    expect(memory).toEqual({ 0: { memory: 14 }, 1: { memory: 10 } });
  });
});
