// needs: machine
import { spawnSync } from 'node:child_process';
import { lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CpuManagerState, formatCpuManagerState } from '../../lib/entries/kubelet.js';
import { CpuSet, openManager } from '../../lib/index.js';
import {
  checkBesideKubelet,
  type KubeletFacts,
  ownExclusive,
  podOfCgroup,
  type RecordedKubelet,
  strictlyReserved,
} from '../../lib/kubelet/kubelet-conflict.js';
import { readKubeletFacts } from '../../lib/kubelet/kubelet-facts.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { canMount } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

const UID = '39b37746-7f5e-4064-b8e1-eebd2bfaa003';
const ONLINE = CpuSet.parse('0-15');

function cpuState(
  defaultCpuSet: string,
  entries: Record<string, string>,
  policyName = 'static',
): CpuManagerState {
  const pods = Object.entries(entries).map(
    ([uid, cpus]) => [uid, new Map([['app', CpuSet.parse(cpus)]])] as const,
  );
  return { policyName, defaultCpuSet: CpuSet.parse(defaultCpuSet), entries: new Map(pods) };
}

const facts = (more: Partial<KubeletFacts> = {}): KubeletFacts => ({
  found: ['/var/lib/kubelet/cpu_manager_state'],
  cpu: undefined,
  pod: undefined,
  isInContainer: false,
  allowed: ONLINE,
  cpuLimit: undefined,
  ...more,
});

describe('beside a kubelet', () => {
  const conflict = (found: KubeletFacts, universe: string, record: RecordedKubelet | null = null) =>
    thrownBy(() => checkBesideKubelet(found, CpuSet.parse(universe), ONLINE, record));

  it('nothing is refused if none was found', () => {
    expect(conflict(facts({ found: [] }), '0-15')).toBeUndefined();
  });

  it('the error names the findings and CPUs that would be valid', () => {
    const error = conflict(facts({ cpu: cpuState('2-11', { [UID]: '12-15' }) }), '0-3');
    expect(error).toMatchObject({
      code: 'ERR_KUBELET_CONFLICT',
      details: {
        value: '0-3',
        valid: ['0-1'],
        found: ['/var/lib/kubelet/cpu_manager_state'],
        strictlyReserved: '0-1',
        ownExclusive: '',
      },
    });
    expect(error?.message).toMatch(
      /cpu_manager_state.*CPUs 0-3.*managedCPUs within 0-1.*besideKubelet: true/,
    );
  });

  const keeper = { pid: 12, command: 'numalign-node', alive: true };
  const kept = (cpus: string, alive = true): RecordedKubelet => ({
    cpus: CpuSet.parse(cpus),
    keeper: { ...keeper, alive },
  });

  it('nothing is refused while a process keeps the kubelet’s allocations on record', () => {
    const found = facts({ cpu: cpuState('0-11', { [UID]: '12-15' }) });
    expect(conflict(found, '0-15', kept('12-15'))).toBeUndefined();
    // Its content is unreadable, since the folder is root's.
    expect(conflict(facts(), '0-15', kept(''))).toBeUndefined();
    // CPUs that are on record but no longer in the file are taken from no pod.
    expect(conflict(found, '0-15', kept('8-15'))).toBeUndefined();
  });

  it('allocations of the kubelet that are not on record yet lead to an error, unless the CPUs are not managed', () => {
    const found = facts({ cpu: cpuState('0-7', { [UID]: '8-11', other: '12-15' }) });
    expect(conflict(found, '0-15', kept('12-15'))?.message).toMatch(/try again: CPUs 8-11/);
    expect(conflict(found, '0-7,12-15', kept('12-15'))).toBeUndefined();
  });

  it('a record without a keeper does not count, and the error names the last keeper', () => {
    const found = facts({ cpu: cpuState('0-11', { [UID]: '12-15' }) });
    expect(conflict(found, '0-15')?.message).toMatch(/let `numalign-node` record what it assigns/);
    expect(conflict(found, '0-15', kept('12-15', false))).toMatchObject({
      code: 'ERR_KUBELET_CONFLICT',
      message: expect.stringMatching(/numalign-node.* again: process 12 \(numalign-node\).* has ended/),
    });
  });

  it('only CPUs that are neither shared nor allocated count as strictly reserved', () => {
    const reservedOf = (cpu: CpuManagerState | undefined) => String(strictlyReserved(facts({ cpu }), ONLINE));
    expect(reservedOf(cpuState('2-11', { [UID]: '12-15' }))).toBe('0-1');
    expect(reservedOf(cpuState('0-11', { [UID]: '12-15' }))).toBe('');
    expect(reservedOf(cpuState('', { [UID]: '2-15' }))).toBe('0-1');
    // As the kubelet creates it, before it has looked at the machine.
    expect(reservedOf(cpuState('', {}))).toBe('');
    expect(reservedOf(cpuState('', {}, 'none'))).toBe('');
    expect(reservedOf(undefined)).toBe('');
    expect(conflict(facts({ cpu: cpuState('2-15', {}) }), '0-1')).toBeUndefined();
    expect(conflict(facts({ cpu: cpuState('2-15', {}) }), '0-2')?.code).toBe('ERR_KUBELET_CONFLICT');
  });

  it('CPUs of pods as a whole are allocated: neither reserved nor proposed', () => {
    const podEntries = new Map([[UID, { cpuSet: CpuSet.parse('12-15') }]]);
    for (const shared of ['2-11', '']) {
      const cpu = { ...cpuState(shared, {}), podEntries };
      const reserved = CpuSet.parse('0-11').difference(CpuSet.parse(shared));
      expect(strictlyReserved(facts({ cpu }), ONLINE)).toEqual(reserved);
      expect(conflict(facts({ cpu }), '15')).toMatchObject({
        code: 'ERR_KUBELET_CONFLICT',
        details: { valid: [String(reserved)] },
      });
    }
  });

  it('CPUs that containers of a pod share are not those of one container', () => {
    const entries = new Map([
      [
        UID,
        new Map(
          [
            ['own', '8-9'],
            ['a', '10-11'],
            ['b', '10-11'],
          ].map(([name, cpus]) => [name!, CpuSet.parse(cpus!)]),
        ),
      ],
    ]);
    const podEntries = new Map([[UID, { cpuSet: CpuSet.parse('8-11') }]]);
    const cpu = { ...cpuState('0-7', {}), entries, podEntries };
    const pod = { uid: UID, qosClass: 'Guaranteed' } as const;
    const own = (allowed: string, state: CpuManagerState = cpu) =>
      String(
        ownExclusive(facts({ cpu: state, pod, isInContainer: true, allowed: CpuSet.parse(allowed) }), ONLINE),
      );
    expect(own('8-9')).toBe('8-9');
    expect(own('10-11')).toBe('');
    // Elsewhere an init container left them to a later container.
    expect(own('10-11', { ...cpu, podEntries: new Map() })).toBe('10-11');
  });

  it("a container's own CPUs are those of the entry that it runs in", () => {
    const cpu = cpuState('0-7', { [UID]: '8-11', other: '12-15' });
    const own = (more: Partial<KubeletFacts>) =>
      String(ownExclusive(facts({ cpu, isInContainer: true, ...more }), ONLINE));
    const pod = { uid: UID, qosClass: 'Guaranteed' } as const;
    expect(own({ pod, allowed: CpuSet.parse('8-11') })).toBe('8-11');
    expect(own({ pod, allowed: CpuSet.parse('9') })).toBe('8-11');
    expect(own({ allowed: CpuSet.parse('12-15') })).toBe('12-15');
    // Another pod's, the shared pool, both, and the machine's.
    expect(own({ pod, allowed: CpuSet.parse('12-15') })).toBe('');
    expect(own({ pod, allowed: CpuSet.parse('0-7') })).toBe('');
    expect(own({ pod, allowed: CpuSet.parse('7-8') })).toBe('');
    expect(own({ allowed: ONLINE })).toBe('');
    // Pinned to them from outside is not in them.
    expect(own({ isInContainer: false, allowed: CpuSet.parse('8-11') })).toBe('');
    expect(own({ pod, allowed: CpuSet.EMPTY })).toBe('');
  });

  it('without its file only a Guaranteed container with as many CPUs as its limit has exclusive CPUs', () => {
    const pod = { uid: UID, qosClass: 'Guaranteed' } as const;
    const own = (more: Partial<KubeletFacts>) =>
      String(
        ownExclusive(
          facts({ pod, isInContainer: true, allowed: CpuSet.parse('8-11'), cpuLimit: 4, ...more }),
          ONLINE,
        ),
      );
    expect(own({})).toBe('8-11');
    expect(own({ cpuLimit: 3.5 })).toBe('');
    expect(own({ cpuLimit: undefined })).toBe('');
    expect(own({ pod: { uid: UID, qosClass: 'Burstable' } })).toBe('');
    expect(own({ pod: undefined })).toBe('');
    expect(own({ allowed: ONLINE, cpuLimit: 16 })).toBe('');
    const within = facts({ pod, isInContainer: true, allowed: CpuSet.parse('8-11'), cpuLimit: 4 });
    expect(conflict(within, '8-9')).toBeUndefined();
    expect(conflict(within, '7-9')?.details).toMatchObject({ valid: ['8-11'], ownExclusive: '8-11' });
  });
});

describe("a cgroup's path", () => {
  it.each([
    [`/kubepods/pod${UID}/abc`, 'Guaranteed'],
    [`/kubepods/burstable/pod${UID}/abc`, 'Burstable'],
    [`/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-containerd-abc.scope`, 'Guaranteed'],
    [
      `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${UID.replaceAll('-', '_')}.slice/x.scope`,
      'BestEffort',
    ],
    [
      `/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod${UID.replaceAll('-', '_')}.slice/x`,
      'Guaranteed',
    ],
  ])('%s reveals the pod, and that it is %s', (path, qosClass) => {
    expect(podOfCgroup(path)).toEqual({ uid: UID, qosClass });
  });

  it('of static pods has a uid of another form, others reveal nothing', () => {
    expect(podOfCgroup('/kubepods/pod0123456789abcdef0123456789abcdef/x')?.uid).toBe(
      '0123456789abcdef0123456789abcdef',
    );
    for (const path of ['/', '/system.slice/kubelet.service', `/docker/pod${UID}`, '/kubepods.slice']) {
      expect(podOfCgroup(path)).toBeUndefined();
    }
  });
});

/** A machine's files, and links where a value begins with `->`. */
function machineWith(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    if (text.startsWith('->')) symlinkSync(text.slice(2), path);
    else writeFileSync(path, text);
  }
  return root;
}

// Processes and files of a kubelet are root's.
describe.runIf(process.getuid?.() === 0)('a kubelet is found', () => {
  const ROOTS = 'Uid:\t0\t0\t0\t0\n';
  const HOST = {
    'proc/self/ns/cgroup': '->cgroup:[4026531835]',
    'proc/self/cgroup': '0::/user.slice/session-1.scope\n',
    'proc/self/status': 'Name:\tnode\nCpus_allowed_list:\t0-15\n',
  };
  const STATE = 'var/lib/kubelet/cpu_manager_state';
  const file = formatCpuManagerState(cpuState('2-15', {}));

  it('nowhere on a machine without one', () => {
    const root = machineWith({ ...HOST, 'proc/1/comm': 'systemd\n', 'proc/2/comm': 'kubelet-x\n' });
    expect(readKubeletFacts(root)).toEqual(facts({ found: [], allowed: ONLINE }));
    expect(readKubeletFacts(machineWith({})).found).toEqual([]);
  });

  it('by its state files, which are read if they are whole', () => {
    expect(readKubeletFacts(machineWith({ ...HOST, [STATE]: file }))).toEqual(
      facts({
        found: [`/${STATE}`],
        cpu: { ...cpuState('2-15', {}), podEntries: new Map(), verified: true } as CpuManagerState,
      }),
    );
    for (const text of ['', file.replace('2-15', '3-15'), file.replace(/\d+\}$/, '0}')]) {
      const { found, cpu } = readKubeletFacts(machineWith({ ...HOST, [STATE]: text }));
      expect({ found, cpu }).toEqual({ found: [`/${STATE}`], cpu: undefined });
    }
    const memory = machineWith({ ...HOST, 'var/lib/kubelet/memory_manager_state': '' });
    expect(readKubeletFacts(memory).found).toEqual(['/var/lib/kubelet/memory_manager_state']);
  });

  it('by its service while that is active', () => {
    const root = machineWith({ ...HOST, 'run/systemd/units/invocation:kubelet.service': '->0123' });
    expect(readKubeletFacts(root).found).toEqual(['kubelet.service']);
  });

  it('by its process, with the files in its folder', () => {
    const root = machineWith({
      ...HOST,
      'proc/77/comm': 'kubelet\n',
      'proc/77/status': ROOTS,
      'proc/77/cmdline': '/usr/bin/kubelet\0--root-dir=/data/kubelet\0-v\0',
      'data/kubelet/cpu_manager_state': file,
    });
    const { found, cpu } = readKubeletFacts(root);
    expect(found).toEqual(['/data/kubelet/cpu_manager_state', 'process 77, kubelet']);
    expect(cpu?.defaultCpuSet).toEqual(CpuSet.parse('2-15'));
    const words = machineWith({
      ...HOST,
      'proc/7/comm': 'k3s-server\n',
      'proc/7/status': ROOTS,
      'proc/7/cmdline': 'k3s\0--root-dir\0/data\0',
    });
    expect(readKubeletFacts(words).found).toEqual(['process 7, k3s-server']);
  });

  it('not by a process of another user’s, nor in the folder that one names', () => {
    const root = machineWith({
      ...HOST,
      'proc/77/comm': 'kubelet\n',
      'proc/77/status': 'Uid:\t65534\t0\t0\t0\n',
      'proc/77/cmdline': 'kubelet\0--root-dir=/data\0',
      'data/cpu_manager_state': file,
    });
    expect(readKubeletFacts(root)).toMatchObject({ found: [], cpu: undefined });
  });

  it('not by files and links of another user’s, which are not read', () => {
    const service = 'run/systemd/units/invocation:kubelet.service';
    const root = machineWith({ ...HOST, [STATE]: file, [service]: '->0123' });
    for (const path of [STATE, service]) lchownSync(join(root, path), 65534, 65534);
    expect(readKubeletFacts(root)).toMatchObject({ found: [], cpu: undefined });
  });

  it('from inside of its pods, with the CPUs of the container whatever its threads are pinned to', () => {
    const path = `/kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice/cri-containerd-abc.scope`;
    const pod = { uid: UID, qosClass: 'Guaranteed' };
    const inPod = { ...HOST, 'proc/self/status': 'Cpus_allowed_list:\t9\n' };
    const expected = { found: [`this process is in pod ${UID}`], pod, isInContainer: true, cpuLimit: 4 };
    const v2 = machineWith({
      ...inPod,
      'proc/self/cgroup': `0::${path}/below\n`,
      [`sys/fs/cgroup${path}/below/cpu.max`]: 'max 100000\n',
      [`sys/fs/cgroup${path}/below/cpuset.cpus.effective`]: '9\n',
      [`sys/fs/cgroup${path}/cpu.max`]: '400000 100000\n',
      [`sys/fs/cgroup${path}/cpuset.cpus.effective`]: '8-11\n',
    });
    expect(readKubeletFacts(v2)).toMatchObject({ ...expected, allowed: CpuSet.parse('8-11') });
    const v1 = machineWith({
      ...inPod,
      'proc/self/cgroup': `3:cpuset:${path}\n2:cpu,cpuacct:${path}\n0::/\n`,
      'sys/fs/cgroup/cpuset/cpuset.cpus': '8-11\n',
      'sys/fs/cgroup/cpu/cpu.cfs_quota_us': '400000\n',
      'sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
    });
    expect(readKubeletFacts(v1)).toMatchObject({ ...expected, allowed: CpuSet.parse('8-11') });
    const unknown = machineWith({ ...inPod, 'proc/self/cgroup': `0::${path}\n` });
    expect(readKubeletFacts(unknown)).toMatchObject({
      ...expected,
      cpuLimit: undefined,
      allowed: CpuSet.of(9),
    });
  });

  it('not from a container with its own cgroups, unless its files are mounted there', () => {
    const root = machineWith({
      'proc/self/ns/cgroup': '->cgroup:[4026532700]',
      'proc/self/cgroup': '0::/\n',
      'sys/fs/cgroup/cpuset.cpus.effective': '8-11\n',
      'sys/fs/cgroup/cpu.max': '400000 100000\n',
    });
    expect(readKubeletFacts(root)).toMatchObject({ found: [], pod: undefined, isInContainer: true });
    mkdirSync(join(root, 'var/lib/kubelet'), { recursive: true });
    writeFileSync(join(root, STATE), formatCpuManagerState(cpuState('0-7,12-15', { [UID]: '8-11' })));
    expect(String(ownExclusive(readKubeletFacts(root), ONLINE))).toBe('8-11');
  });
});

/** A file of the built package, as a script imports it. */
const entry = (name: string) =>
  JSON.stringify(fileURLToPath(new URL(`../../dist/${name}.js`, import.meta.url)));

describe('openManager', () => {
  it('takes besideKubelet as true or false, and looks for no kubelet in a private folder', async () => {
    const stateDir = makeStateDir();
    expect(await errorOf(() => openManager({ stateDir, besideKubelet: 'yes' as never }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
    });
    (await openManager({ stateDir })).close();
  });

  // Over the machine's folders lie others, for this one program.
  it.skipIf(!canMount)(
    'for the machine is refused beside a kubelet, but within its strictly reserved CPUs',
    () => {
      const script = `
      import { mkdirSync, writeFileSync } from 'node:fs';
      import { formatCpuManagerState } from ${entry('entries/kubelet')};
      import { discover } from ${entry('entries/topology')};
      import { CpuSet, openManager } from ${entry('index')};
      const { cpus } = await discover();
      const reserved = CpuSet.of(cpus.first);
      mkdirSync('/var/lib/kubelet');
      const state = { policyName: 'static', defaultCpuSet: cpus.difference(reserved), entries: new Map() };
      writeFileSync('/var/lib/kubelet/cpu_manager_state', formatCpuManagerState(state));
      const results = [];
      const open = async (options, settings) => {
        try {
          // No cgroup of the machine's is left behind.
          const manager = await openManager({ cgroupRoot: null, ...options });
          if (settings) await manager.configure(settings);
          results.push(manager.scope);
          manager.close();
        } catch (error) {
          results.push(error.code);
        }
      };
      await open();
      await open({ managedCPUs: reserved });
      await open();
      await open({ managedCPUs: null });
      await open({}, { managedCPUs: null });
      await open({ besideKubelet: true }, { managedCPUs: null });
      await open();
      await open({ besideKubelet: true });
      console.log(JSON.stringify(results));
    `;
      const inside =
        'mount -t tmpfs none /var/lib && mount -t tmpfs none /run && exec "$0" --input-type=module -e "$1"';
      const { stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', inside, process.execPath, script], {
        encoding: 'utf8',
      });
      expect({ stderr, results: JSON.parse(stdout || 'null') }).toEqual({
        stderr: '',
        results: [
          'ERR_KUBELET_CONFLICT',
          'machine',
          'machine',
          'ERR_CONFIG_CONFLICT',
          'ERR_KUBELET_CONFLICT',
          'machine',
          'ERR_KUBELET_CONFLICT',
          'machine',
        ],
      });
    },
  );

  it.skipIf(!canMount)(
    'for the machine is refused beside exclusive pods, but while a process keeps them on record',
    () => {
      const script = `
      import { mkdirSync, writeFileSync } from 'node:fs';
      import { formatCpuManagerState } from ${entry('entries/kubelet')};
      import { discover } from ${entry('entries/topology')};
      import { CpuSet, openManager } from ${entry('index')};
      const { cpus } = await discover();
      const web = CpuSet.of(cpus.toArray().at(-1));
      mkdirSync('/var/lib/kubelet');
      const giveOut = (entries) => {
        const defaultCpuSet = cpus.difference(entries);
        const state = { policyName: 'static', defaultCpuSet, entries: new Map([['uid', new Map([['main', entries]])]]) };
        writeFileSync('/var/lib/kubelet/cpu_manager_state', formatCpuManagerState(state));
      };
      giveOut(web);
      const pods = (held) => [{ namespace: 'default', name: 'web', containers: [{ name: 'main', cpus: held }] }];
      const results = [];
      const open = async () => {
        try {
          const manager = await openManager({ sharedMember: false });
          results.push(String(manager.sharedPool().intersection(web)));
          manager.close();
        } catch (error) {
          results.push(error.code + ' ' + (/numalign-node.( again)?|try again/.exec(error.message)?.[0] ?? ''));
        }
      };
      const keeper = await openManager({ besideKubelet: true, cgroupRoot: null, sharedMember: false });
      await open();
      await keeper.recordKubelet(pods(web));
      await open();
      giveOut(cpus);
      await open();
      giveOut(web);
      keeper.close();
      // With the last manager goes the lock by which the process lives.
      await new Promise((resolve) => setImmediate(resolve));
      await open();
      console.log(JSON.stringify(results));
    `;
      const inside =
        'mount -t tmpfs none /var/lib && mount -t tmpfs none /run && exec "$0" --input-type=module -e "$1"';
      const { stdout, stderr } = spawnSync('unshare', ['-m', 'sh', '-c', inside, process.execPath, script], {
        encoding: 'utf8',
      });
      expect({ stderr, results: JSON.parse(stdout || 'null') }).toEqual({
        stderr: '',
        results: [
          'ERR_KUBELET_CONFLICT numalign-node`',
          '',
          'ERR_KUBELET_CONFLICT try again',
          'ERR_KUBELET_CONFLICT numalign-node` again',
        ],
      });
    },
  );

  it.skipIf(!canMount)('refuses commands that grant CPUs, unless they insist, but no others', () => {
    const main = fileURLToPath(new URL('../../packages/cli/dist/main.cjs', import.meta.url));
    const commands = [
      'run --cpus 1 --silent -- true',
      'run --cpus 1 --silent --beside-kubelet --cgroup-root none -- true',
      'admit -f /var/lib/pod.yaml',
      'admit -f /var/lib/pod.yaml --beside-kubelet',
      'release web',
      'configure --reserved 0',
      'state export --kubelet /var/lib/exported',
      'status',
    ];
    const limits = { cpu: 1, memory: '1Mi' };
    const spec = { containers: [{ name: 'a', limits }] };
    const pod = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec });
    const inside = [
      'set -e; mount -t tmpfs none /var/lib; mount -t tmpfs none /run; mkdir /var/lib/kubelet',
      'touch /var/lib/kubelet/cpu_manager_state',
      `echo '${pod}' > /var/lib/pod.yaml`,
      ...commands.map(
        (command) => `"$0" "$1" ${command} 2>&1 >/dev/null | grep -o 'ERR_[A-Z_]*' || echo done`,
      ),
    ].join('\n');
    const { stdout } = spawnSync('unshare', ['-m', 'sh', '-c', inside, process.execPath, main], {
      encoding: 'utf8',
    });
    const refused = 'ERR_KUBELET_CONFLICT';
    expect(stdout.trim().split('\n')).toEqual([
      refused,
      'done',
      refused,
      'done',
      'done',
      'done',
      'done',
      'done',
    ]);
  });
});
