// needs: folders
// A value of a known field that only a newer numalign knows: no damage, and not a byte is touched.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ENFORCEMENT_LEVELS } from '../../lib/account/levels.js';
import { ISOLATIONS, QUIET_PARTS } from '../../lib/account/pod-assignment.js';
import { KUBELET_VERSIONS } from '../../lib/base/kubelet-features.js';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { remainsOf, STATE_FORMAT } from '../../lib/state/format/journal.js';
import { decodeOwnerFile, OWNER_FORMAT } from '../../lib/state/format/owner-file.js';
import { CONTAINER_KINDS, OWNER_KINDS } from '../../lib/state/format/pod-record.js';
import { sealLine } from '../../lib/state/format/sealed-json.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

const FIELDS = [
  ['settings.kubeletVersion', /"kubeletVersion":"[^"]*"/, '"kubeletVersion":"v9.99"'],
  ['owner.kind', /"kind":"persistent"/, '"kind":"claim"'],
  ['kind', /"kind":"app"/, '"kind":"ephemeral"'],
  ['isolation', /"kind":"app"/, '"isolation":"vm","kind":"app"'],
  ['enforcement.level', /"level":"recorded"/, '"level":"sealed"'],
  ['enforcement.fallenFrom', /"level":"recorded"/, '"fallenFrom":"sealed","level":"recorded"'],
] as const;

const SEAL = /,"checksum":"crc32:[0-9a-f]{8}"\}$/;
const seal = (line: string) => sealLine(line.replace(SEAL, '}')).trimEnd();

/** The text of a file with a value changed wherever it is, and each line sealed again. */
function changed(text: string, from: RegExp, to: string): string {
  const lines = text.split('\n').map((line) => line && seal(line.replaceAll(new RegExp(from, 'g'), to)));
  const length = (lines[1] ?? '').length + 1;
  return [seal(lines[0]!.replace(/"bytes":\d+/, `"bytes":${length}`)), ...lines.slice(1)].join('\n');
}

function rewrite(path: string, from: RegExp, to: string): void {
  const text = changed(readFileSync(path, 'utf8'), from, to);
  expect(text).toContain(to);
  writeFileSync(`${path}.other`, text, { mode: 0o600 });
  renameSync(`${path}.other`, path);
}

const everything = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => [
      path,
      statSync(path).mtimeMs,
      createHash('sha256').update(readFileSync(path)).digest('hex'),
    ]);

async function written() {
  const topology = await discover({ synthetic: 'core:8 pu:1' });
  const stateDir = makeStateDir();
  const manager = await openManager({ topology, stateDir, cgroupRoot: null, kubeletVersion: 'v1.36' });
  await manager.acquire({ cpu: 2, owner: 'persistent', name: 'lasting' });
  return { topology, stateDir, manager, file: join(stateDir, 'state.json') };
}

describe('a value that only a newer numalign knows', () => {
  it.each(FIELDS)('is refused in %s, and nothing is touched', async (where, from, to) => {
    const { topology, stateDir, manager, file } = await written();
    rewrite(file, from, to);
    const before = everything(stateDir);
    const refused = {
      code: 'ERR_STATE_VERSION',
      message: expect.stringMatching(`${where} is '.*run the one`),
    };
    expect(await errorOf(() => openManager({ topology, stateDir }))).toMatchObject(refused);
    expect(await errorOf(() => openManager({ topology, stateDir, readOnly: true }))).toMatchObject(refused);
    expect(await errorOf(() => manager.acquire({ cpu: 1 }))).toMatchObject(refused);
    expect(() => manager.grants()).toThrow(expect.objectContaining(refused));
    manager.close();
    expect(everything(stateDir)).toEqual(before);
  });

  it('is refused in the remains of a damaged state too', async () => {
    const { file } = await written();
    const bytes = Buffer.from(changed(readFileSync(file, 'utf8'), FIELDS[0][1], FIELDS[0][2]));
    expect(() => remainsOf([bytes])).toThrow(expect.objectContaining({ code: 'ERR_STATE_VERSION' }));
  });

  it('is no damage of an owner’s file, which stays when its owner has ended', async () => {
    const { topology, stateDir, manager } = await written();
    const owners = join(stateDir, 'owners');
    const own = readdirSync(owners).find((name) =>
      readFileSync(join(owners, name), 'utf8').includes('"lasting"'),
    );
    const uuid = '01234567-89ab-cdef-0123-456789abcdef';
    const text = readFileSync(join(owners, own!), 'utf8').replaceAll(own!, uuid);
    const other = text.split('\n').map((line) => line && seal(line.replaceAll(/"persistent"/g, '"claim"')));
    writeFileSync(join(owners, uuid), other.join('\n'), { mode: 0o600 });
    expect(() => decodeOwnerFile(readFileSync(join(owners, uuid)))).toThrow(
      expect.objectContaining({ code: 'ERR_STATE_VERSION' }),
    );
    manager.close();
    (await openManager({ topology, stateDir })).close();
    expect(readdirSync(owners)).toContain(uuid);
  });

  it('of another type is damage', async () => {
    const { topology, stateDir, file } = await written();
    rewrite(file, /"level":"recorded"/, '"level":7');
    (await openManager({ topology, stateDir })).close();
    expect(readdirSync(join(stateDir, 'quarantine'))).toHaveLength(1);
  });
});

// Options of placements are names, not values: older builds keep those that they do not know.
it('an option of a grant that only a newer numalign knows is kept', async () => {
  const { topology, stateDir, manager, file } = await written();
  rewrite(file, /"options":\{/, '"options":{"coming-option":true,');
  await manager.acquire({ cpu: 1, name: 'next' });
  await manager.configure({ strictCPUReservation: false });
  manager.close();
  (await openManager({ topology, stateDir })).close();
  const options = membersOf(stateDir).pods.map((pod: { options: object }) =>
    Reflect.get(pod.options, 'coming-option'),
  );
  expect(options).toEqual([true, undefined]);
});

it('options that are only proposed do not raise the version', async () => {
  const { manager, file } = await written();
  const version = () => /"version":\d+/.exec(readFileSync(file, 'utf8'))![0];
  const before = version();
  await manager.acquire({
    cpu: 1,
    topologyManagerPolicyOptions: {
      'restrict-to-cpu-numa-nodes': true,
      'numa-allocation-strategy': 'most-allocated',
    },
  });
  await manager.configure({ reservedSystemCPUs: '0' });
  expect(version()).toBe(before);
});

// docs/state-format.md: a new value of a known field raises the format's version. Adding one
// takes a higher STATE_FORMAT and OWNER_FORMAT, and lets only files with the value have the new version.
describe('the values of the formats', () => {
  it('are those of their versions', () => {
    expect([STATE_FORMAT.version, OWNER_FORMAT.version]).toEqual([4, 4]);
    expect({
      kubeletVersion: KUBELET_VERSIONS,
      owner: OWNER_KINDS,
      container: CONTAINER_KINDS,
      isolation: ISOLATIONS,
      level: ENFORCEMENT_LEVELS,
      quiet: QUIET_PARTS,
    }).toMatchInlineSnapshot(`
      {
        "container": [
          "init",
          "sidecar",
          "app",
        ],
        "isolation": [
          "container",
          "pod",
          "host",
        ],
        "kubeletVersion": [
          "v1.32",
          "v1.36",
          "v1.37",
        ],
        "level": [
          "recorded",
          "members",
          "cpuset",
          "partition",
          "isolated",
        ],
        "owner": [
          "process",
          "cgroup",
          "persistent",
        ],
        "quiet": [
          "interrupts",
          "workqueues",
          "packets",
          "idle",
          "frequency",
          "cache",
        ],
      }
    `);
  });
});
