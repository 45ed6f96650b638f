// needs: folders
// numalign plan of workloads, and of pods in options of the command line.
import fc from 'fast-check';
import { openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newFolder, numalign } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

// 16 CPUs, 8 a node.
const MACHINE = ['--synthetic', 'package:2 [numa(memory=8GiB)] core:4 pu:2'];

const deployment = (replicas: string, cpu = 2, name = 'web') => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  ${replicas}
  template:
    spec:
      containers:
        - {name: main, resources: {limits: {cpu: ${cpu}, memory: 1Gi}}}
        - {name: log, resources: {limits: {cpu: 100m, memory: 16Mi}}}
`;

const plan = (text: string, ...args: string[]) => numalign(['plan', '-f', newFile(text), ...args]);

async function planJson(...args: string[]) {
  const { code, stdout, stderr } = await numalign(['plan', ...args, '--output', 'json']);
  expect(stderr).toBe('');
  return { code, ...JSON.parse(stdout) };
}

describe('numalign plan of a workload', () => {
  it('plans as many pods as it has replicas, with a row each', async () => {
    const { code, stdout, stderr } = await plan(deployment('replicas: 3'), ...MACHINE);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.split('\n')).toEqual([
      'Deployment web (Guaranteed): 3 of 3 pods fit',
      'POD    CPUS  NUMA  MEMORY',
      'web-0  0-1   0     1.0 GiB on 0',
      'web-1  2-3   0     1.0 GiB on 0',
      'web-2  4-5   0     1.0 GiB on 0',
      'no exclusive CPUs: container log: 100m is not a whole number of CPUs',
      'admitted under best-effort, scope container',
      '',
    ]);
  });

  it('says how many of --replicas fit, and why the first rejected one does not', async () => {
    const { code, stdout } = await plan(deployment('replicas: 3'), ...MACHINE, '--replicas', '10');
    expect(code).toBe(1);
    const lines = stdout.split('\n');
    expect(lines[0]).toBe('Deployment web (Guaranteed): 7 of 10 pods fit');
    expect(lines.find((line) => line.startsWith('web-6 '))).toMatch(/^web-6 +12-13 +1 /);
    const why = lines.findIndex((line) => line.startsWith('rejected: '));
    expect(lines[why]).toMatch(
      /^rejected: web-7 and 2 more: UnexpectedAdmissionError: .*one of the CPUs 14-15 must stay shared; at most 1 can be granted now$/,
    );
    expect(lines.slice(why)).toContain('  held by "web-6": 12-13');
  });

  it('prints each pod as JSON, and how many of each workload fit', async () => {
    const file = newFile(
      documents(deployment('replicas: 2'), pod('one', 1), deployment('replicas: 0', 1, 'none')),
    );
    const answer = await planJson('-f', file, ...MACHINE, '--replicas', '4');
    expect(answer.workloads).toEqual([
      { kind: 'Deployment', name: 'web', replicas: 2, pods: 4, fit: 4 },
      { kind: 'Pod', name: 'one', replicas: 1, pods: 4, fit: 4 },
      { kind: 'Deployment', name: 'none', replicas: 0, pods: 4, fit: 3 },
    ]);
    expect([answer.code, answer.admitted, answer.pods.length]).toEqual([1, false, 12]);
    expect(answer.pods[5]).toMatchObject({ name: 'one-1', admitted: true, containers: [{ cpus: '9' }] });
    expect(answer.pods[11]).toMatchObject({
      name: 'none-3',
      admitted: false,
      reason: 'UnexpectedAdmissionError',
    });
  });

  it('says so if it has no pods, and shows the containers of a single pod', async () => {
    const { code, stdout } = await plan(
      documents(deployment('replicas: 0'), deployment('', 2, 'api')),
      ...MACHINE,
    );
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(0, 4)).toEqual([
      'Deployment web asks for no pods',
      '',
      'pod api-0 (Guaranteed) of Deployment api',
      expect.stringMatching(/^CONTAINER +KIND /),
    ]);
  });

  it('plans each of the replicas as if alone, one on top of the other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 9 }), async (cpu, count) => {
        const each = documents(...Array.from({ length: count }, (_, i) => pod(`a-${i}`, cpu)));
        const single = await planJson('-f', newFile(each), ...MACHINE);
        const copies = await planJson('-f', newFile(pod('a', cpu)), ...MACHINE, '--replicas', String(count));
        const shared = ({ pods }: { pods: { uid: string }[] }) =>
          pods.map((one) => (count === 1 ? { ...one, uid: '', name: '' } : one));
        expect(shared(copies)).toEqual(shared(single));
        expect(copies.code).toBe(single.code);
      }),
      { numRuns: 12 },
    );
  });

  it('plans what kubectl lists', async () => {
    const items = [pod('a', 1), pod('b', 1)].map((text) =>
      text.trim().replace(/^/gm, '    ').replace('    ', '  - '),
    );
    const list = `apiVersion: v1\nkind: List\nitems:\n${items.join('\n')}\n`;
    const answer = await planJson('-f', newFile(list), ...MACHINE);
    expect(answer.pods.map(({ name }: { name: string }) => name)).toEqual(['a', 'b']);
  });

  it('skips documents without pods, and names them on stderr', async () => {
    const other = (kind: string, i = 0) => `apiVersion: v1\nkind: ${kind}\nmetadata: {name: web-${i}}\n`;
    const chart = documents('\ufeff', other('Service'), deployment(''), other('Secret', 1)).replaceAll(
      '\n',
      '\r\n',
    );
    const file = newFile(chart, 'chart.yaml');
    const { code, stdout, stderr } = await numalign(['plan', '-f', file, ...MACHINE]);
    expect([code, stdout.split('\n')[0]]).toEqual([0, 'pod web-0 (Guaranteed) of Deployment web']);
    expect(stderr).toBe(`numalign: ${file}: skipped, without pods: Service web-0, Secret web-1\n`);
    const many = documents(pod('one', 1), ...Array.from({ length: 12 }, (_, i) => other('Secret', i)));
    const more = await plan(many, ...MACHINE, '--output', 'json');
    expect(more.stderr).toMatch(/: skipped, without pods: Secret web-0, (.*, )Secret web-9 and 2 more\n$/);
    expect(JSON.parse(more.stdout).workloads).toHaveLength(1);
  });

  it('plans the pods of several files, and refuses files without any', async () => {
    const files = [pod('a', 1), 'kind: Service\nmetadata: {name: web}\n', pod('b', 1)].map((text) =>
      newFile(text),
    );
    const answer = await numalign(['plan', ...files.flatMap((file) => ['-f', file]), ...MACHINE]);
    expect([answer.code, answer.stdout.match(/^pod . /gm)]).toEqual([0, ['pod a ', 'pod b ']]);
    const none = await numalign(['plan', '-f', files[1]!, '--file', newFile('# nothing\n'), ...MACHINE]);
    expect([none.code, none.stdout]).toEqual([1, '']);
    expect(none.stderr).toMatch(/: there is no pod in it, only Service web \[ERR_INVALID_ARGUMENT\]\n$/);
    const twice = await numalign(['plan', '-f', files[0]!, '-f', files[0]!, ...MACHINE]);
    expect([twice.code, twice.stderr]).toEqual([
      1,
      expect.stringContaining('two pods have the name default/a ['),
    ]);
  });

  it('marks pods that are admitted already, and those that would be replaced', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
    const file = newFile(deployment('replicas: 1', 1));
    await numalign(['admit', '-f', file, '--state-dir', folder]);
    const two = await plan(deployment('replicas: 2', 1), '--state-dir', folder);
    expect(two.code).toBe(1);
    expect(two.stdout).toMatch(
      /^Deployment web \(Guaranteed\): 1 of 2 pods fit\n(.*\n)*admitted already: web-0\nrejected: web-1: /,
    );
    const changed = newFile(deployment('replicas: 1', 1).replace('100m', '200m'));
    const refused = await numalign(['plan', '-f', changed, '--state-dir', folder]);
    expect(refused.stderr).toMatch(
      /spec\.template: pod \S+ is admitted already, with other .* \[ERR_POD_CONFLICT\]\n$/,
    );
    const svg = `${newFolder()}/plan.svg`;
    const replaced = await numalign([
      'plan',
      '-f',
      changed,
      '--state-dir',
      folder,
      '--replace',
      '--svg',
      svg,
    ]);
    expect(replaced).toMatchObject({ code: 0, stderr: '' });
    expect(replaced.stdout).toContain(
      '\nadmitted under best-effort, scope container, in place of the pod on record\n',
    );
  });

  it('shows an admitted pod after one that has no room', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
    await numalign(['admit', '-f', newFile(pod('web-1', 1)), '--state-dir', folder]);
    const text = deployment('replicas: 2', 1)
      .replace(/^ *- .name: log.*\n/m, '')
      .replace('1Gi', '16Mi')
      .replace('main', 'main, image: web:1');
    const { code, stdout } = await plan(text, '--state-dir', folder);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^admitted already: web-1$/m);
    expect(stdout).toMatch(/^rejected: web-0: /m);
  });

  it.each([
    ['a replica number that is none', deployment('replicas: few'), /pods\.yaml: spec\.replicas must be a whole number from 0 to 1000, not 'few'/],
    ['a wrong container', deployment('').replace('name: log', 'name: LOG'), /pods\.yaml: spec\.template: spec\.containers\[1\]\.name must be/],
    ['an item', 'kind: List\nitems: [{kind: Deployment, spec: {}}]\n', /pods\.yaml: items\[0\]\.spec\.template must be an object, but there is none/],
    ['the wrong version', deployment('').replace('apps/v1', 'v1'), /apiVersion must be "apps\/v1", not 'v1'/],
    ['an empty list', documents(pod('a', 1), 'kind: List\nitems: []\n'), /document at line 9: items must be a list of at least one/],
  ])('refuses %s, and says where it is', async (_, text, message) => {
    const { code, stdout, stderr } = await plan(text, ...MACHINE, '--lenient');
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/\[ERR_INVALID_POD\]\n$/);
  }); // biome-ignore format: a table
});

describe('numalign plan of pods without a name', () => {
  const UNNAMED = 'containers: [{ name: app, limits: { cpu: 4 } }]\nqosClass: Guaranteed\n';

  it('numbers them through all documents, and names them so in explanations', async () => {
    const { stdout } = await plan(`${UNNAMED}---\n`.repeat(4), ...MACHINE);
    expect(stdout.match(/^pod.*$/gm)).toEqual([1, 2, 3, 4].map((n) => `pod ${n} (Guaranteed)`));
    expect(stdout).toMatch(/held by "pod 1": .*\n.*"pod 2": .*\n.*"pod 3": /);
  });

  it('does not mistake one for a pod on record', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder });
    onTestFinished(() => manager.close());
    await manager.admit(
      { uid: 'pod 1', qosClass: 'BestEffort', containers: [{ name: 'app' }] },
      { owner: 'persistent' },
    );
    const { stdout } = await numalign(['plan', '--cpus', '1', '--replicas', '2', '--state-dir', folder]);
    expect(stdout).toContain('pod 2');
    expect(stdout).not.toContain('pod 1');
  });
});

describe('numalign plan without a file', () => {
  it('plans a Guaranteed pod of one container, placed like by run', async () => {
    const { code, stdout } = await numalign([
      'plan',
      '--cpus',
      '4',
      '--memory',
      '2Gi',
      '--policy',
      'restricted',
      ...MACHINE,
    ]);
    expect(code).toBe(0);
    expect(stdout.split('\n').slice(1)).toEqual([
      'CONTAINER  KIND  CPUS  HELD  NUMA  MEMORY',
      'main       app   0-3   none  0     2 GiB on 0',
      'admitted under restricted, scope container',
      '',
    ]);
    const none = await planJson('--cpus', '4', ...MACHINE);
    expect(none.pods).toMatchObject([{ qosClass: 'Guaranteed', containers: [{ cpus: '0-3', memory: [] }] }]);
  });

  it('says how many of these pods fit', async () => {
    const nic = ['--device', 'example.com/nic=class:0200', '--resource', 'example.com/nic=1'];
    const { code, stdout } = await numalign(['plan', '--cpus', '4', '--replicas', '5', ...MACHINE]);
    expect([code, stdout.split('\n')[0]]).toEqual([1, 'Pod without a name (Guaranteed): 3 of 5 pods fit']);
    expect(stdout).toContain('\nrejected: pod 4 and 1 more: ');
    expect(stdout).toMatch(/held by "pod 1": 0-3\n.*"pod 2": 4-7\n.*"pod 3": 8-11\n/);
    const devices = await planJson('--cpus', '1', ...nic, ...MACHINE);
    expect(devices.pods).toMatchObject([{ admitted: false, code: 'ERR_INSUFFICIENT_DEVICES' }]);
  });

  it.each([
    [['-f', '-', '-f', '-'], 'only one --file can be the standard input'],
    [['-f', 'x', '-f', '-', '--config', '-'], 'only one of --file, --config can be the standard input'],
    [['--cpus', '1', '-f', 'x'], "option '--cpus' cannot be used with option '-f, --file <file>'"],
    [['-f', 'x', '--memory', '1Gi'], "option '--memory' cannot be used with option '-f, --file <file>'"],
    [['--memory', '1Gi'], "required option '--cpus <n>' not specified"],
    [['--cpus', '0'], 'It must be a whole number of CPUs, at least 1.'],
    [['--cpus', '1', '--replicas', '0'], 'It must be a whole number of pods from 1 to 1000.'],
    [['--cpus', '1', '--replicas', '1e3'], 'It must be a whole number of pods from 1 to 1000.'],
  ])('%j is a wrong command line', async (args, message) => {
    const { code, stdout, stderr } = await numalign(['plan', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  }); // biome-ignore format: a table
});
