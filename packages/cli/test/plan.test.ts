// needs: folders
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CpuSet, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, vi } from 'vitest';
import { native } from '../../../lib/base/native.js';
import { rewrite } from '../../../test/conformance/state-file.js';
import { makeNewer } from '../../../test/support/newer-state.js';
import { canUnshare } from '../../../test/support/rights.js';
import { runProgram } from '../lib/program.js';
import { endLater, endReapers, MAIN, newFolder, numalign, start, until } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

// Node 0: CPUs 0-7, node 1: 8-15, node 2 and 3 on the second package; two CPUs a core.
const MACHINE = ['--synthetic', 'package:2 numa:2 core:4 pu:2'];

const SEVERAL_CONTAINERS = `
kind: Pod
metadata: {name: gateway}
spec:
  initContainers:
    - {name: setup, resources: {limits: {cpu: 2, memory: 1Gi}}}
    - {name: proxy, restartPolicy: Always, resources: {limits: {cpu: 1, memory: 1Gi}}}
  containers:
    - {name: main, resources: {limits: {cpu: 3, memory: 1Gi}}}
    - {name: log, resources: {limits: {cpu: 500m, memory: 1Gi}}}
`;

function plan(text: string, ...args: string[]) {
  return numalign(['plan', '-f', newFile(text), ...args]);
}

async function planJson(text: string, ...args: string[]) {
  const { code, stdout, stderr } = await plan(text, '--output', 'json', ...args);
  expect(stderr).toBe('');
  return { code, ...JSON.parse(stdout) };
}

describe('numalign plan on a described machine', () => {
  it('shows a line for each container, and the result of the pod', async () => {
    const { code, stdout, stderr } = await plan(SEVERAL_CONTAINERS, ...MACHINE);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'pod gateway (Guaranteed)',
      'CONTAINER  KIND     CPUS         HELD  NUMA',
      'setup      init     0-1          none  0',
      'proxy      sidecar  0            none  0',
      'main       app      1-3          none  0',
      'log        app      shared pool  none  0-3',
      'no exclusive CPUs: container log: 500m is not a whole number of CPUs',
      'admitted under best-effort, scope container',
      '',
    ]);
  });

  it.each([
    ['reads a description without kinds of cores as before, and says so', [], 'all count as alike', '4-5'],
    ['says nothing if all are to count as alike', ['--core-kind', 'any'], '', '4-5'],
  ])('%s', async (_, flags, note, cpus) => {
    const columns = ['cpu', 'core', 'socket', 'numa'];
    const rows = [0, 0, 2, 2, 4, 5].map((core, cpu) => [cpu, core, 0, 0]);
    const file = newFile(JSON.stringify({ columns, cpus: rows, nodes: [{ id: 0 }] }));
    const { stdout, stderr } = await numalign(['plan', '--cpus', '2', '--json', file, ...flags]);
    expect(stdout).toContain(`app   ${cpus}`);
    expect(note === '' ? stderr === '' : stderr.includes(note)).toBe(true);
  });

  // P-cores of two threads, and E-cores, as Linux numbers them.
  const HYBRID = [0, 0, 2, 2, 4, 4, ...[6, 7, 8, 9]];

  it.each([
    ['takes P-cores for the faster ones where numbers of CPUs suggest them', HYBRID, [], '0-1'],
    ['takes cores of one CPU first where all are to count as alike', HYBRID, ['--core-kind', 'any'], '6-7'],
    ['takes no cores for P-cores where siblings may be offline', [0, 1, 2, 3, 4, 5, 0, 1], [], '2-3'],
    ['takes no cores for P-cores where numbers are missing', [0, 0, 2, 2, 4, null, 6, 7, 8], [], '4,6'],
    ['takes no cores for P-cores behind single ones', [0, 1, 2, 3, 4, 4, 6, 6], [], '0-1'],
  ] as const)('%s', async (_, cores, flags, cpus) => {
    const columns = ['cpu', 'core', 'socket', 'numa'];
    const rows = cores.flatMap((core, cpu) => (core === null ? [] : [[cpu, core, 0, 0]]));
    const file = newFile(JSON.stringify({ columns, cpus: rows, nodes: [{ id: 0 }] }));
    const { stdout, stderr } = await numalign(['plan', '--cpus', '2', '--json', file, ...flags]);
    expect(stdout).toContain(`app   ${cpus} `);
    expect(stderr.includes('those of 2 count as performance cores')).toBe(cpus === '0-1' && cores === HYBRID);
  });

  it('takes the fastest kind of cores that a description names', async () => {
    const columns = ['cpu', 'core', 'socket', 'numa', 'coreKind'];
    const rows = [0, 0, 2, 2, 4, 5].map((core, cpu) => [cpu, core, 0, 0, core < 4 ? 1 : 0]);
    const file = newFile(JSON.stringify({ columns, cpus: rows, nodes: [{ id: 0 }] }));
    const { stdout, stderr } = await numalign(['plan', '--cpus', '2', '--json', file]);
    expect([stdout.includes('app   0-1'), stderr]).toEqual([true, '']);
  });

  it('says why NUMA nodes were chosen jointly, under that option', async () => {
    const asked = ['plan', '--cpus', '12', '--placement', 'joint', ...MACHINE];
    const { code, stdout } = await numalign(asked);
    expect(code).toBe(0);
    expect(stdout).toContain(
      'main: NUMA nodes 0-1: 6 sets of 2 nodes have all of it, 2 are the nearest, it is the lowest of these',
    );
  });

  it('places init containers with the whole pod in sight, under that option', async () => {
    const text = documents(
      pod('other', 2),
      `
kind: Pod
metadata: {name: web}
spec:
  initContainers: [{name: setup, resources: {limits: {cpu: 1, memory: 16Mi}}}]
  containers: [{name: main, resources: {limits: {cpu: 3, memory: 16Mi}}}]
`,
    );
    const machine = ['--synthetic', 'numa:2 core:4 pu:1', '--policy', 'single-numa-node'];
    const admitted = async (...args: string[]) =>
      (await planJson(text, ...machine, ...args)).pods.map((each: { admitted: boolean }) => each.admitted);
    expect(await admitted()).toEqual([true, false]);
    expect(await admitted('--init-container-lookahead')).toEqual([true, true]);
  });

  it('aligns a GPU and a NIC with CPUs, memory and hugepages, and names them', async () => {
    const devices = newFile(`
example.com/gpu: [{id: gpu0, numaNodes: [0]}, {id: gpu1, numaNodes: [1]}, {id: gpu2, numaNodes: [1]}]
example.com/nic: [{id: eth0, numaNodes: [0]}, {id: eth1, numaNodes: [1]}]
`);
    const text = `
kind: Pod
metadata: {name: trainer}
spec:
  containers:
    - name: main
      resources: {limits: {cpu: 4, memory: 8Gi, example.com/gpu: 2, example.com/nic: 1}}
    - {name: log, resources: {limits: {cpu: 500m, memory: 1Gi}}}
`;
    const machine = ['--synthetic', 'package:2 [numa(memory=32GB)] core:8 pu:2'];
    const { code, stdout } = await plan(
      text,
      ...machine,
      '--policy',
      'single-numa-node',
      '--devices',
      devices,
    );
    expect(code).toBe(0);
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      'pod trainer (Guaranteed)',
      'CONTAINER  KIND  CPUS         HELD  NUMA  MEMORY      DEVICES',
      'main       app   16-19        none  1     8 GiB on 1  example.com/gpu gpu1 gpu2, example.com/nic eth1',
      'log        app   shared pool  none  0     1 GiB on 0  none',
      'no exclusive CPUs: container log: 500m is not a whole number of CPUs',
      'admitted under single-numa-node, scope container',
      '',
    ]);
  });

  it('selects devices of a captured machine by a pattern', async () => {
    const machine = [
      '--xml',
      fileURLToPath(new URL('../../../test/fixtures/machines/pci.xml', import.meta.url)),
    ];
    const text = `
kind: Pod
metadata: {name: net}
spec: {containers: [{name: main, resources: {limits: {cpu: 2, memory: 64Mi, example.com/nic: 1}}}]}
`;
    const nic = ['--device', 'example.com/nic=class:0200,vendor:8086'];
    const answer = await planJson(text, ...machine, ...nic, '--policy', 'single-numa-node');
    expect(answer.pods[0].containers[0]).toMatchObject({
      cpus: '12-13',
      devices: { 'example.com/nic': [{ id: '0000:81:00.0', nodes: [3] }] },
      memory: [{ nodes: [3], type: 'memory', bytes: 64 * 2 ** 20 }],
    });
  });

  it('grants the whole CPUs of a fraction with --mixed, and shows the booking of the shared pool', async () => {
    const text = documents(pod('one', 2.5), pod('two', 0.5));
    const { stdout } = await plan(text, ...MACHINE, '--mixed');
    expect(stdout).toMatch(/^main +app +0-1 \+ 0\.5 shared +none +0$/m);
    expect(stdout).toMatch(/^main +app +shared pool +none/m);
    const answer = await planJson(text, ...MACHINE, '--mixed');
    expect(answer.pods.map((each: { containers: object[] }) => each.containers[0])).toMatchObject([
      { cpus: '0-1', mixed: 0.5 },
      { cpus: null, mixed: 0 },
    ]);
  });

  it('plans several pods one on top of the other, and says which is rejected and why', async () => {
    const text = documents(pod('one', 6), pod('two', 6), pod('three', 21), pod('four', 8));
    const { code, stdout, stderr } = await plan(text, ...MACHINE, '--policy', 'single-numa-node');
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const blocks = stdout.split('\n\n').map((block) => block.split('\n'));
    expect(blocks).toHaveLength(4);
    expect(blocks[0]![2]).toMatch(/^main +app +0-5 +none +0$/);
    expect(blocks[1]![2]).toMatch(/^main +app +8-13 +none +1$/);
    expect(blocks[2]!.slice(0, 2)).toEqual([
      'pod three (Guaranteed)',
      expect.stringMatching(/^rejected: \w+: container main: /),
    ]);
    expect(blocks[2]).toContain('  held by "one": 0-5');
    // As if the third had never been requested.
    expect(blocks[3]![2]).toMatch(/^main +app +16-23 +none +2$/);
  });

  it.each([
    ['{}', 'BestEffort: container main has no limit of cpu and memory'],
    ['{limits: {cpu: 1}}', 'Burstable: container main has no limit of memory'],
    ['{limits: {cpu: 1500m, memory: 1Gi}}', 'container main: 1500m is not a whole number of CPUs'],
    ['{limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}', 'Burstable: container main requests less cpu than its limit'],
  ])('says why a container with %s gets no exclusive CPUs, as JSON too', async (resources, why) => {
    const text = `kind: Pod\nspec: {containers: [{name: main, resources: ${resources}}]}\n`;
    const { code, stdout } = await plan(text, ...MACHINE);
    expect(code).toBe(0);
    expect(stdout.split('\n')).toContain(`no exclusive CPUs: ${why}`);
    const { pods } = await planJson(text, ...MACHINE);
    expect(pods[0].containers).toMatchObject([{ cpus: null, whyShared: why }]);
  }); // biome-ignore format: a table

  it('prints the same as JSON, hints and explanation included', async () => {
    const answer = await planJson(
      documents(pod('one', 6, ', uid: u-1'), pod('two', 12)),
      ...MACHINE,
      '--policy',
      'single-numa-node',
    );
    expect(answer).toMatchObject({
      code: 1,
      admitted: false,
      pods: [
        {
          uid: 'u-1',
          name: 'one',
          qosClass: 'Guaranteed',
          alreadyAdmitted: false,
          policy: 'single-numa-node',
          scope: 'container',
          admitted: true,
          containers: [
            {
              name: 'main',
              kind: 'app',
              cpus: '0-5',
              whyShared: null,
              held: '',
              hint: { nodes: '0', preferred: true },
            },
          ],
          hints: [{ container: 'main', merged: { admitted: true } }],
        },
        {
          uid: expect.stringMatching(/^[-0-9a-f]{36}$/),
          admitted: false,
          reason: 'TopologyAffinityError',
          code: 'ERR_TOPOLOGY_AFFINITY',
          containers: [],
          explanation: { admittedUnder: ['restricted', 'best-effort', 'none'] },
        },
      ],
    });
  });

  it('reads from standard input, YAML or JSON', async () => {
    const manifest = {
      kind: 'Pod',
      spec: { containers: [{ name: 'main', resources: { limits: { cpu: 2, memory: 1 } } }] },
    };
    const { process: child, ended } = start(['plan', '-f', '-', ...MACHINE]);
    child.stdin?.end(JSON.stringify(manifest, null, '\t'));
    const { code, stdout } = await ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^pod without a name \(Guaranteed\)\n.*\nmain +app +0-1 /);
  });

  it('takes policies, options and reserved CPUs from a KubeletConfiguration, and from flags over it', async () => {
    const config = newFile(
      `kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", strict-cpu-reservation: "true"}
topologyManagerPolicy: single-numa-node
topologyManagerScope: pod
kubeReserved: {cpu: 1500m}
`,
    );
    const text = pod('one', 8);
    const first = await planJson(text, ...MACHINE, '--config', config);
    expect(first.pods[0]).toMatchObject({
      policy: 'single-numa-node',
      scope: 'pod',
      containers: [{ cpus: '8-15' }],
    });
    const flags = ['--policy', 'restricted', '--scope', 'container', '--reserved', '8'];
    const second = await planJson(text, ...MACHINE, '--config', config, ...flags);
    expect(second.pods[0]).toMatchObject({
      policy: 'restricted',
      scope: 'container',
      containers: [{ cpus: '0-7' }],
    });
    // Whole cores from the document, balanced from the flag.
    const both = ['--policy', 'none', '--reserved', 'none', '--cpu-option', 'distribute-cpus-across-numa'];
    const third = await planJson(pod('one', 12), ...MACHINE, '--config', config, ...both);
    expect(third.pods[0].containers).toMatchObject([{ cpus: '0-5,8-13' }]);
    const odd = await planJson(pod('one', 3), ...MACHINE, '--config', config, ...both);
    expect(odd.pods[0].code).toBe('ERR_SMT_ALIGNMENT');
    const off = await planJson(
      pod('one', 3),
      ...MACHINE,
      '--config',
      config,
      '--cpu-option',
      'full-pcpus-only=false',
    );
    expect(off.code).toBe(0);
  });

  it("says so if Kubernetes' defaults give no container exclusive CPUs", async () => {
    const config = newFile('kind: KubeletConfiguration\n');
    const { stdout } = await plan(pod('one', 2), ...MACHINE, '--config', config);
    expect(stdout).toMatch(/^main +app +shared pool +none +any$/m);
    expect(stdout).toContain(
      'no exclusive CPUs: the CPU policy is none\nadmitted under none, scope container\n',
    );
  });

  it('reads amounts as Kubernetes does', async () => {
    const cpus = async (amount: string) =>
      (await planJson(pod('a', amount), ...MACHINE)).pods[0].containers[0].cpus;
    expect(await cpus('0x10')).toBe('0-15');
    expect(await cpus('1e1')).toBe('0-9');
    expect(await cpus('"4000m"')).toBe('0-3');
    expect(await cpus('010')).toBe('0-7');
  });

  it('makes control characters of names harmless', async () => {
    const { code, stderr } = await plan('kind: "Po\\e[31md\\n"\n', ...MACHINE);
    expect(code).toBe(1);
    expect(stderr).not.toContain('\u001b');
    expect(stderr.split('\n')).toHaveLength(2);
  });
});

describe('numalign plan on this machine', () => {
  it('makes no state folder; without one the machine is empty', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stdout } = await plan(pod('one', 1), '--state-dir', folder, '--reserved', '0');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^main +app +[1-9]\d* +none +\d+ +16 MiB on \d+$/m);
    expect(existsSync(folder)).toBe(false);
  });

  it('counts recorded settings and live grants, and changes nothing', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
    const free = await planJson(pod('one', 1), '--state-dir', folder);
    expect(free.pods[0].containers[0].cpus).toBe('1');

    const run = [
      'run',
      '--cpus',
      '1',
      '--name',
      'job',
      '--state-dir',
      folder,
      '--',
      'sh',
      '-c',
      'echo $$; exec sleep 1000',
    ];
    const holder = start(run);
    const pid = Number(
      await until(() => /^(\d+)\n/.exec(holder.output.stdout)?.[1], 'the pid of the command'),
    );
    const id = await until(
      () => /grant ([0-9a-f-]{36})/.exec(holder.output.stderr)?.[1],
      'the line of numalign',
    );
    endLater(pid, `NUMALIGN_GRANT=${id}`);
    const taken = await plan(pod('one', 1), '--state-dir', folder);
    expect(taken.code).toBe(1);
    expect(taken.stdout).toContain(`held by "job" of process ${holder.process.pid}: 1`);

    // Dead, and not yet taken back: its CPU is free for the next request.
    endReapers(folder);
    holder.process.kill('SIGKILL');
    await holder.ended;
    const files = () =>
      readdirSync(folder).map((name) => [
        name,
        ['owners', 'waiting', 'members'].includes(name)
          ? readdirSync(join(folder, name))
          : readFileSync(join(folder, name), 'utf8'),
      ]);
    const before = files();
    await until(
      async () => (await planJson(pod('one', 1), '--state-dir', folder)).code === 0,
      'the death of the grant',
    );
    expect(files()).toEqual(before);
    expect(readdirSync(join(folder, 'owners'))).toHaveLength(1);
  });

  it('shows the grant of an admitted pod, and refuses another request with its uid', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder, managedCPUs: '0-1', reservedSystemCPUs: '0' });
    const limits = { cpu: 1, memory: '16Mi' };
    await manager.admit(
      { uid: 'u-1', name: 'one', containers: [{ name: 'main', limits }] },
      { owner: 'persistent', policy: 'restricted' },
    );
    const same = await plan(pod('one', 1, ', uid: u-1'), '--state-dir', folder);
    expect(same.code).toBe(0);
    expect(same.stdout).toMatch(
      /^main +app +1 +none +0 +16 MiB on 0\nadmitted already, under restricted, scope container$/m,
    );
    const other = await plan(pod('one', 2, ', uid: u-1'), '--state-dir', folder);
    expect(other).toMatchObject({ code: 1, stdout: '' });
    expect(other.stderr).toMatch(/pods\.yaml: pod u-1 is admitted already, .* \[ERR_POD_CONFLICT\]\n$/);
    manager.close();
  });

  it('plans nothing on a state that grants nothing, like admit', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', '0', '--state-dir', folder]);
    makeNewer(folder, true);
    for (const command of ['plan', 'admit']) {
      const { code, stdout, stderr } = await numalign([
        command,
        '-f',
        newFile(pod('one', 1)),
        '--state-dir',
        folder,
      ]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toContain('[ERR_STATE_VERSION]');
    }
  });

  it('does not mistake CPUs that a dead owner’s grant isolates for CPUs that the kernel isolates', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder, managedCPUs: '0-1', reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 1, owner: 'persistent' });
    manager.close();
    const owner = { kind: 'process', uuid: randomUUID(), pid: 1, command: null };
    rewrite(folder, (state) => ({
      ...state,
      pods: state.pods.map((one) => ({ ...one, owner, enforcement: { level: 'isolated', target: null } })),
    }));
    vi.spyOn(native, 'readCpuList').mockReturnValue(CpuSet.of(1).words);
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    try {
      const file = newFile(pod('one', 1));
      await runProgram(['node', 'numalign', 'plan', '-f', file, '--state-dir', folder, '--output', 'json']);
      const { pods } = JSON.parse(String(written.mock.calls[0]));
      expect(pods[0].containers).toMatchObject([{ cpus: '1' }]);
    } finally {
      vi.restoreAllMocks();
    }
  });

  it.runIf(canUnshare)("plans as if nothing were granted if the machine's state is closed", async () => {
    const hide = 'mount -t tmpfs tmpfs /run; touch /run/numalign; exec "$@"';
    const program = ['unshare', '--mount', 'sh', '-ec', hide, 'sh', process.execPath, MAIN] as const;
    const { code, stdout, stderr } = await numalign(['plan', '-f', newFile(pod('one', 1))], { program });
    expect(stderr).toContain('planned as if nothing were granted, since the state cannot be read: ');
    expect([code, stdout.split('\n').at(-2)]).toEqual([0, 'admitted under best-effort, scope container']);
  });

  it('refuses settings that differ from those recorded, and a state of a simulated machine', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', '0', '--state-dir', folder]);
    const differs = await plan(pod('one', 1), '--state-dir', folder, '--reserved', '1');
    expect(differs.code).toBe(1);
    expect(differs.stderr).toContain('reservedSystemCPUs is 0, not 1');
    const simulated = newFolder();
    (
      await openManager({ stateDir: simulated, topology: await discover({ synthetic: 'core:2 pu:1' }) })
    ).close();
    const wrong = await plan(pod('one', 1), '--state-dir', simulated);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('[ERR_SIMULATED_MACHINE]');
  });
});

describe('files and command lines that plan refuses', () => {
  it.each([
    ['no pod', '---\n# nothing\n---\n', /pods\.yaml: there is no pod in it \[ERR_INVALID_ARGUMENT\]/],
    ['another kind', 'kind: Service\nspec: {}\n', /pods\.yaml: there is no pod in it, only Service \[ERR_INVALID_ARGUMENT\]/],
    ['a misspelt kind after a pod', documents(pod('a', 1), pod('b', 1).replace('Pod', 'Pods')), /pods\.yaml, line 11, column 1: kind must be one of Pod, .*, not 'Pods' \[ERR_INVALID_POD\]/],
    ['broken YAML', 'kind: Pod\nspec: [1,\nx: 2\n', /pods\.yaml, line 3, column 1: Flow sequence .* \[ERR_INVALID_ARGUMENT\]/],
    ['a wrong amount', pod('a', '2x'), /spec\.containers\[0\]\.resources\.limits\.cpu must be a quantity .* not '2x' \[ERR_INVALID_QUANTITY\]/],
  ])('%s', async (_, text, message) => {
    const { code, stdout, stderr } = await plan(text, ...MACHINE);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr.split('\n')).toHaveLength(2);
  }); // biome-ignore format: a table

  it('a file that is missing, has no end or is no text', async () => {
    const missing = await numalign(['plan', '-f', '/nonexistent.yaml', ...MACHINE]);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toBe('numalign: /nonexistent.yaml: no such file [ERR_INVALID_ARGUMENT]\n');
    const endless = await numalign(['plan', '-f', '/dev/zero', ...MACHINE]);
    expect(endless.stderr).toBe('numalign: /dev/zero: it is larger than 4 MiB [ERR_INVALID_ARGUMENT]\n');
    const file = newFile('');
    writeFileSync(file, Buffer.of(0xff, 0xfe, 0));
    expect((await numalign(['plan', '-f', file, ...MACHINE])).stderr).toContain('it is not UTF-8 text');
  });

  it('a file that is no configuration', async () => {
    const wrong = await plan(pod('a', 1), ...MACHINE, '--config', newFile(pod('a', 1), 'kubelet.yaml'));
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain(
      `kubelet.yaml: kubeletConfiguration.kind must be "KubeletConfiguration", not 'Pod'`,
    );
    const two = documents('kind: KubeletConfiguration\n', 'kind: KubeletConfiguration\n');
    const several = await plan(pod('a', 1), ...MACHINE, '--config', newFile(two));
    expect(several.stderr).toContain('it must be one document');
  });

  it.each([
    [[], "required option '-f, --file <file>' or '--cpus <n>' not specified"],
    [['-f', '-', '--config', '-'], 'only one of --file, --config can be the standard input'],
    [['-f', '-', '--devices', '-'], 'only one of --file, --devices can be the standard input'],
    [['-f', 'x', '--policy', 'strict'], 'Allowed choices are none, best-effort, restricted, single-numa-node.'],
    [['-f', 'x', '--scope', 'node'], 'Allowed choices are container, pod.'],
    [['-f', 'x', '--cpu-option', 'full-pcpus'], 'did you mean "full-pcpus-only"?'],
    [['-f', 'x', '--cpu-option', 'full-pcpus-only=yes'], "full-pcpus-only must be true or false, not 'yes'"],
    [['-f', 'x', '--cpu-option', 'full-pcpus-only', '--cpu-option', 'distribute-cpus-across-cores'], 'exclude each other'],
    [['-f', 'x', '--reserved', '3-1'], "argument '3-1' is invalid"],
    [['-f', 'x', '--synthetic', 'core:2', '--state-dir', '/tmp'], 'cannot be used with'],
  ])('%j, a wrong command line', async (args, message) => {
    const { code, stdout, stderr } = await numalign(['plan', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  }); // biome-ignore format: a table
});
