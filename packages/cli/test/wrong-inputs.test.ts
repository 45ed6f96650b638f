// needs: nothing
// What new users type wrongly: each error names what to write instead, and nothing before it leads
// away from it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../lib/program.js';
import { COMMANDS_MEANT, FLAGS_MEANT } from '../lib/terminal/suggestions.js';
import { newFolder, runHere } from './numalign.js';

const MACHINE = ['--synthetic', 'package:2 [numa(memory=8GiB)] core:4 pu:1'];

/** A pod of one container with these resources, in YAML. */
const podOf = (resources: string, name = 'a') => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  containers:
    - {name: c, resources: {${resources}}}
`;

function fileOf(text: string): string {
  const path = join(newFolder(), 'pod.yaml');
  writeFileSync(path, text);
  return path;
}

const NO_DOMAIN = 'a name with a domain such as example.com/gpu';
const FULL = 'cpu: 2, memory: 4Gi';

describe('a manifest with', () => {
  it.each([
    [
      '2 cores',
      podOf('limits: {cpu: "2 cores", memory: 4GB}'),
      'QUANTITY',
      `not '2 cores'; did you mean "2"?`,
    ],
    ['500 m', podOf('limits: {cpu: 500 m, memory: 4Gi}'), 'QUANTITY', 'did you mean "500m"?'],
    ['4gb', podOf('limits: {cpus: 2, memory: 4gb}'), 'QUANTITY', 'did you mean "4Gi" or "4G"?'],
    [
      'more than its limit',
      podOf(`requests: {cpu: 4}, limits: {${FULL}}`),
      'POD',
      'at most its limit 2, not 4',
    ],
    ['cpus', podOf('limits: {cpus: 2, memory: 4Gi}'), 'POD', 'keyed by cpu (valid are cpu, memory,'],
    ['CPU', podOf('limits: {CPU: 2, memory: 4Gi}'), 'POD', 'keyed by cpu (valid are cpu, memory,'],
    [
      'gpu',
      podOf(`limits: {${FULL}, gpu: 1}`),
      'POD',
      `keyed by cpu, memory, ephemeral-storage, hugepages-<size> or ${NO_DOMAIN}`,
    ],
    ['hugepages-2M', podOf(`limits: {${FULL}, hugepages-2M: 4Mi}`), 'POD', 'named hugepages-2Mi'],
    ['half a hugepage', podOf(`limits: {${FULL}, hugepages-2Mi: 1Mi}`), 'POD', 'such as 2Mi'],
    [
      'two of a name',
      podOf(`limits: {${FULL}}}}, {name: c, resources: {limits: {${FULL}}`)
        .replace('- {', '[{')
        .replace(/\}\n$/, '}]\n'),
      'POD',
      'unique in the pod',
    ],
    [
      'container',
      podOf('').replace('containers', 'container'),
      'POD',
      'spec.container must be named containers',
    ],
    [
      'no container',
      podOf('').replace(/containers:.*/s, 'volumes: []\n'),
      'POD',
      'a list of at least one container',
    ],
    [
      'an open brace',
      'kind: Pod\nmetadata: {name: a\nspec:\n',
      'ARGUMENT',
      'line 3, column 1: Flow map in block collection must be sufficiently indented and end with a }',
    ],
    [
      'templates',
      podOf('', '{{ .Release.Name }}'),
      'ARGUMENT',
      'it has {{ .Release.Name }}: render the template first',
    ],
    [
      'quoted templates',
      podOf('limits: {cpu: "{{ .Values.cpu }}"}'),
      'QUANTITY',
      'render the template first, with `helm template`',
    ],
    [
      'devices',
      'nvidia.com/gpu:\n  - {id: GPU-0, numaNodes: [0]}\n',
      'ARGUMENT',
      'it has devices (nvidia.com/gpu), no pods: give it with --devices',
    ],
  ])('%s', async (_, text, code, remedy) => {
    const file = fileOf(text);
    // All that is wrong is named, this too.
    expect((await runHere(['plan', '-f', file, ...MACHINE])).stderr).toContain(remedy);
    const { stderr } = await runHere(['plan', '-f', file, ...MACHINE, '--lenient']);
    expect(stderr).toContain(remedy);
    expect(stderr).toMatch(new RegExp(`^numalign: /\\S+/pod.yaml.* \\[ERR_INVALID_${code}\\]\\n$`));
  });

  it('500m of memory is planned, with a warning', async () => {
    const file = fileOf(podOf('limits: {cpu: 2, memory: 500m}'));
    const { code, stderr } = await runHere(['plan', '-f', file, ...MACHINE]);
    expect([code, stderr]).toEqual([
      0,
      `numalign: ${file}: warning: spec.containers[0].resources.limits.memory is a fraction of a byte (500m); did you mean 500Mi?\n`,
    ]);
  });
});

describe('the command line with', () => {
  it.each([
    ['plan pod.yaml', 'pods come from a file, as in -f pod.yaml'],
    ['plan --cpus 1 --memory 500m', 'whole bytes, such as 500Mi.'],
    ['plan --cpus 1 --memory 4GB', 'did you mean "4Gi" or "4G"?\n'],
    ['plan --cpus two', 'a whole number of CPUs, at least 1'],
    ['plan --cpu 1', 'Did you mean --cpus?'],
    ['plan', "required option '-f, --file <file>' or '--cpus <n>'"],
    ['plan --cpus 1 --policy singel', 'Allowed choices are none, best-effort, restricted, single-numa-node'],
    ['share 99999999', 'a whole number from 1 to 4194304'],
    ['stauts', 'Did you mean status?'],
    ['pin -- app', '(Did you mean run --cpus 1 -- ./server?)\n'],
    ['exec', '(Did you mean run '],
    ['start', '(Did you mean run '],
    ['ls', '(Did you mean status?)'],
    ['lsit', '(Did you mean status?)'],
    ['topo', '(Did you mean topology?)'],
    ['free', '(Did you mean release?)'],
    ['install', '(Did you mean setup?)'],
    ['state lst', '(--help after'],
    ['--cpus 2 -- app', '(Did you mean run --cpus?)'],
    ['--state-dir /tmp status', '(Did you mean status --state-dir?)'],
    ['-v', '(Did you mean --version?)'],
    ['status --jsn', '(Did you mean --output json?)'],
    ['status -o json', '(Did you mean --output json?)'],
    ['topology --jsn', '(Did you mean --json?)'],
    ['topology --json', '(Did you mean --output json?)'],
    ['status -w', '(Did you mean --watch?)'],
    ['run -n 2 -- app', '(Did you mean --cpus?)'],
    ['run --cpus 1 --numa 0 -- app', '(Did you mean --policy single-numa-node?)'],
    ['run --cpus 1 --wiat -- app', '(Did you mean --wait?)'],
    ['uninstall -n', '(Did you mean --dry-run?)'],
    ['completion csh', 'Allowed choices are bash, zsh, fish'],
  ])('%s', async (line, remedy) => {
    const { code, stderr } = await runHere(line.split(' '));
    expect(stderr).toContain(remedy);
    expect([code, stderr.slice(0, 10)]).toEqual([2, 'numalign: ']);
  });

  it('what other programs call something leads to a command or flag that there is', () => {
    const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
    const commands = all(createProgram());
    const flags = commands.flatMap(({ options }) => options.map(({ long }) => long));
    const valid = [...commands.map((command) => command.name()), 'help', ...flags];
    const meanings = [...COMMANDS_MEANT, ...FLAGS_MEANT].flatMap(([, meaning]) => meaning.split(' ')[0]);
    expect(meanings.filter((word) => !valid.includes(word))).toEqual([]);
  });

  it('version says what --version says', async () => {
    expect(await runHere(['version'])).toEqual(await runHere(['--version']));
  });

  it('a state folder of all users names the folder first, and then another', async () => {
    const { stderr } = await runHere([
      'admit',
      '-f',
      fileOf(podOf(`limits: {${FULL}}`)),
      '--state-dir',
      '/tmp',
    ]);
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(
        /^numalign: the state folder \/tmp cannot be used: .*\/tmp\/numalign \[ERR_STATE_FOLDER\]$/,
      ),
      expect.stringContaining('use --state-dir DIR'),
      '',
    ]);
  });
});
