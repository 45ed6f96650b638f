// The reference documents beside what they describe: no option, export or warning is missing, and
// none is there that does not exist.
import { spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createProgram } from '../../lib/cli/program.js';
import * as cluster from '../../lib/entries/cluster.js';
import { parseConfig } from '../../lib/input/config.js';
import { collectMetrics } from '../../lib/metrics/index.js';
import { registerMetrics } from '../../lib/metrics/opentelemetry.js';
import { numalign as commandLine, newFolder, start, until } from '../cli/numalign.js';
import { ROOT, read } from '../support/documents.js';
import { errorOf } from '../support/error-of.js';
import * as numalign from '../support/package.js';
import { makeStateDir } from '../support/state-dir.js';

/** The text from a heading to the next one of its level or a higher one. */
function section(page: string, heading: string): string {
  const level = /^#+/.exec(heading)![0].length;
  const from = page.indexOf(`\n${heading}\n`);
  expect(from, heading).toBeGreaterThan(-1);
  const rest = page.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end < 0 ? rest : rest.slice(0, end);
}

const HEADS = ['option', 'code', 'when', 'of', 'promise', '---'];

/** The rows of all tables in a text, as cells. */
function rows(text: string): string[][] {
  return [...text.matchAll(/^\|(.*)\|$/gm)]
    .map(([, row]) => row!.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter(([first]) => !HEADS.includes(first!));
}

const codeIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);
/** What the first cells of the tables name. */
const named = (text: string) => rows(text).flatMap(([first]) => codeIn(first!));

/** The pid of a process that lives until the test is over. */
function sleeper(): number {
  const child = spawn('sleep', ['1000']);
  onTestFinished(() => void child.kill());
  return child.pid!;
}

/** What a command that goes on prints until it is interrupted after its first line. */
async function firstLine(args: readonly string[]) {
  const { process: child, output, ended } = start(args);
  await until(() => output.stdout.includes('\n'), `the first line of ${args.join(' ')}`);
  child.kill('SIGINT');
  return ended;
}

/** The names that a function takes, as it tells who gives another one. */
async function optionsOf(ask: () => unknown): Promise<string[]> {
  const { code, details } = await errorOf(ask);
  expect(code).toBe('ERR_INVALID_OPTION');
  return [...(details.valid as string[])].sort();
}

describe('docs/configuration.md', () => {
  const page = read('docs/configuration.md');
  const wrong = { noSuchOption: 1 } as object;
  const manager = (await_: (manager: numalign.Manager) => unknown) => async () => {
    const topology = await numalign.discover({ synthetic: 'core:2 pu:1' });
    return await_(await numalign.openManager({ topology }));
  };
  const tables = (...headings: string[]) =>
    headings.flatMap((heading) => named(section(page, heading))).sort();
  const upTo = (heading: string, end: string) => named(section(page, heading).split(`\n${end}\n`)[0]!);

  it('has every option of openManager, and no other', async () => {
    const options = await optionsOf(() => numalign.openManager(wrong));
    expect(tables('## Settings of the machine', '## Options of openManager')).toEqual(options);
  });

  it('has every setting of the machine, and no other', async () => {
    const options = await optionsOf(manager((each) => each.configure(wrong)));
    expect(tables('## Settings of the machine')).toEqual(options);
  });

  it('has every option of acquire and of admit, and no other', async () => {
    const ofAcquire = await optionsOf(manager((each) => each.acquire(wrong as numalign.AcquireOptions)));
    expect(upTo('## Options of requests', '### cpuManagerPolicyOptions').sort()).toEqual(ofAcquire);
    const ofAdmit = await optionsOf(manager((each) => each.admit({ containers: [] }, wrong)));
    expect(upTo('## Options of requests', '`acquire` alone has these too:').sort()).toEqual(ofAdmit);
  });

  it('has every option of the methods, and no other', async () => {
    const stateDir = makeStateDir();
    const manager = await numalign.openManager({ stateDir });
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(() => grant.release().then(() => manager.close()));
    const { topology } = manager;
    const asked: Record<string, (options: never) => unknown> = {
      pin: (options) => numalign.pin(topology.cpus, options),
      'pin(request)': (options) => numalign.pin(options),
      'grant.pin': (options) => grant.pin(options),
      'grant.placeThreads': (options) => grant.placeThreads(options),
      'grant.prewarmPool': (options) => grant.prewarmPool(options),
      'grant.placeWorkers': (options) => grant.placeWorkers(options),
      'grant.poolOptions': (options) => grant.poolOptions('piscina', options),
      'grant.exec': (options) => grant.exec('true', [], options),
      'grant.schedule': (options) => grant.schedule(options),
      'grant.buffer': (options) => grant.buffer(1, options),
      'grant.audit': (options) => grant.audit(options),
      'manager.audit': (options) => manager.audit(grant.uid, options),
      'grant.resize': (options) => grant.resize(options),
      'manager.defragment': (options) => manager.defragment(options),
      'manager.takeOver': (options) => manager.takeOver('', options),
      'manager.registerDevices': (options) => manager.registerDevices('example.com/nic', [], options),
      'manager.admitAll': (options) => manager.admitAll([], options),
      'manager.adopt': (options) => manager.adopt({ containers: [{ name: 'main' }] }, options),
      'manager.importKubelet': (options) =>
        manager.importKubelet({ cpuManagerState: '', memoryManagerState: null }, options),
      'manager.recordKubelet': (options) => manager.recordKubelet(null, options),
      discover: (options) => numalign.discover(options),
      'topology.bestFit': (options) => topology.bestFit(topology.cpus, 1, options),
      'topology.cpuHints': (options) => topology.cpuHints(options),
      mergeHints: (options) => numalign.mergeHints([], options),
      'cluster.fork': (options) => cluster.fork(options),
      'cluster.restart': (options) => cluster.restart(options),
      collectMetrics: (options) => collectMetrics(manager, options),
      registerMetrics: (options) => registerMetrics(manager, options),
    };
    const documented = new Map<string, string[]>();
    let of: string[] = [];
    for (const [first, options] of rows(section(page, '## Options of methods'))) {
      if (first !== '') of = codeIn(first!);
      for (const name of of)
        documented.set(name, [...(documented.get(name) ?? []), ...codeIn(options!)].sort());
    }
    const ofAcquire = await optionsOf(() => manager.acquire(wrong as numalign.AcquireOptions));
    for (const [name, ask] of Object.entries(asked)) {
      const options = await optionsOf(() => ask(wrong as never));
      const own = name === 'pin(request)' ? options.filter((each) => !ofAcquire.includes(each)) : options;
      expect([name, documented.get(name)]).toEqual([name, own]);
    }
    // These hand on what they do not know.
    expect([...documented.keys()].filter((name) => !(name in asked))).toEqual([
      'grant.worker',
      'grant.spawn',
      'grant.fork',
      'parseCpuManagerState',
    ]);
  });

  it.each([['cpuManagerPolicyOptions'], ['topologyManagerPolicyOptions']])(
    'has all of %s, and no other',
    async (name) => {
      expect(tables(`### ${name}`)).toEqual(await optionsOf(() => numalign.openManager({ [name]: wrong })));
    },
  );

  it('has the defaults that there are', () => {
    const { placement, ...config } = parseConfig({});
    const defaults = {
      stateDir: numalign.MACHINE_STATE_DIR,
      cpuManagerPolicy: placement.cpuPolicy,
      memoryManagerPolicy: placement.memoryPolicy,
      topologyManagerPolicy: placement.topologyPolicy,
      topologyManagerScope: placement.scope,
      enforcement: config.enforcement.enforcement,
      unmovableMembers: config.enforcement.unmovableMembers,
      sharedMember: `${config.sharedMember}`,
      cpuManagerReconcilePeriod: `'${config.reconcilePeriodMs / 1000}s'`,
      lockTimeoutMs: config.lockTimeoutMs.toLocaleString('en'),
      besideKubelet: `${config.besideKubelet}`,
    };
    const table = new Map(
      rows(section(page, '## Options of openManager')).map(([name, , text]) => [name, text!]),
    );
    for (const [name, value] of Object.entries(defaults)) {
      const [first] = table.get(`\`${name}\``)!.split(/[;:] /);
      expect([name, first!.replaceAll('`', '').trim()]).toEqual([name, value]);
    }
  });

  it('says of the options of the CPU policy which exclude each other', async () => {
    const table = rows(section(page, '### cpuManagerPolicyOptions'));
    const names = table.map(([name]) => codeIn(name!)[0]!);
    const topology = await numalign.discover({ synthetic: 'core:2 pu:1' });
    const isRefused = (...both: string[]) => {
      const cpuManagerPolicyOptions = Object.fromEntries(both.map((name) => [name, true]));
      return numalign.openManager({ topology, cpuManagerPolicyOptions }).then(
        (manager) => manager.close() ?? false,
        ({ code }) => code === 'ERR_INVALID_OPTION',
      );
    };
    for (const [first, , notWith] of table) {
      const [name] = codeIn(first!);
      const refused = [];
      for (const other of names) if (other !== name && (await isRefused(name!, other))) refused.push(other);
      expect([name, codeIn(notWith!).filter((each) => names.includes(each))]).toEqual([name, refused]);
    }
  });
});

describe('docs/command-line.md', () => {
  const page = read('docs/command-line.md');
  const commands = (command: Command, path: readonly string[] = []): string[] =>
    command.commands.length === 0
      ? [path.join(' ')]
      : command.commands.flatMap((each) => commands(each, [...path, each.name()]));
  const all = commands(createProgram()).sort();
  const keysOf = new Map(
    rows(section(page, '## Output')).flatMap(([command, keys]) => {
      const [always, sometimes = ''] = keys!.split(/; with|, each with/);
      // A head has none.
      return codeIn(command!).map(
        (name) => [name, { always: codeIn(always!), also: codeIn(sometimes) }] as const,
      );
    }),
  );

  it('has every command, and no other', () => {
    const usages = rows(section(page, '## Commands')).flatMap(([usage]) => codeIn(usage!));
    expect(usages.map((usage) => /^[a-z-]+(?: (?:show|export|import))?/.exec(usage)![0]).sort()).toEqual(all);
    const printing = all.filter((name) => name !== 'completion');
    expect([...keysOf.keys()].sort()).toEqual([...printing, 'status --watch'].sort());
  });

  it('has the keys of each document, in their order', async () => {
    const folder = newFolder();
    const stateDir = ['--state-dir', join(folder, 'state')];
    const kubelet = ['--kubelet', join(folder, 'kubelet')];
    const pod = join(folder, 'pod.yaml');
    writeFileSync(
      pod,
      'kind: Pod\nmetadata: {name: job}\nspec: {containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Mi}}}]}\n',
    );
    const orders: [command: string, args: string[], more?: { stream?: 'stderr'; isEndless?: true }][] = [
      ['run', ['--cpus', '1', '--', 'true'], { stream: 'stderr' }],
      ['systemd-unit', ['--cpus', '1', '--', 'true']],
      ['plan', ['-f', pod]],
      ['admit', ['-f', pod]],
      ['topology', []],
      ['status', []],
      ['status --watch', ['--interval', '0.5'], { isEndless: true }],
      ['attach', ['job', String(sleeper())]],
      ['share', [String(sleeper())]],
      ['configure', ['--no-strict']],
      ['doctor', []],
      ['agent', ['--port', '0', '--beside-kubelet'], { isEndless: true }],
      ['state show', []],
      ['state export', kubelet],
      ['release', ['job']],
      ['state import', kubelet],
    ];
    for (const [command, args, { stream = 'stdout', isEndless } = {}] of orders) {
      const words = [...command.split(' '), ...stateDir, '--output', 'json', ...args];
      const printed = (await (isEndless ? firstLine(words) : commandLine(words)))[stream];
      const [first] = /^(?:\{\n[\s\S]*\n\}|\{.*\})$/m.exec(printed) ?? [`no JSON by ${command}: ${printed}`];
      const { always, also } = keysOf.get(command)!;
      const ofAll =
        command === 'topology' ? [...always, ...also.filter((key) => !key.startsWith('--'))] : always;
      expect([command, Object.keys(JSON.parse(first!))]).toEqual([command, ofAll]);
    }
    const nowhere = await commandLine(['status', '--state-dir', join(folder, 'none'), '--output', 'json']);
    expect(Object.keys(JSON.parse(nowhere.stdout))).toEqual(keysOf.get('status')!.also);
  });

  it('has every option with its commands, and no other', () => {
    const options = new Map<string, string[]>();
    const visit = (command: Command, path: readonly string[]) => {
      for (const { long } of path.length > 0 ? command.options : []) {
        options.set(long!, [...(options.get(long!) ?? []), path.join(' ')]);
      }
      for (const each of command.commands) visit(each, [...path, each.name()]);
    };
    visit(createProgram(), []);
    const documented = rows(section(page, '## Options')).map(([option, commands]) => [
      codeIn(option!)[0],
      commands!.split(', ').sort(),
    ]);
    expect(Object.fromEntries(documented)).toEqual(
      Object.fromEntries([...options].map(([option, commands]) => [option, commands.sort()])),
    );
  });
});

describe('docs/api.md', () => {
  const page = read('docs/api.md');
  const identifiers = (names: readonly string[]) => names.map((name) => /^[\w.]+/.exec(name)![0]);
  const members = (name: string) => identifiers(named(section(page, `### ${name}`)));

  /** What a source file exports, types too. */
  const exportsOf = (source: string) =>
    [...source.matchAll(/^export (?:type |const )?\{(.*?)\}/gms)]
      .flatMap(([, list]) => list!.split(','))
      .map((name) => name.trim().replace(/^type /, ''))
      .concat(
        [...source.matchAll(/^export (?:const|function|interface|let) (\w+)/gm)].map(([, name]) => name!),
      )
      .filter(Boolean)
      .sort();

  it('has every export of the package, and no other', () => {
    const classes = [...section(page, '## Classes').matchAll(/^### (\w+)$/gm)].map(([, name]) => name!);
    const others = ['## Functions', '## Constants', '## Types'].flatMap((heading) =>
      named(section(page, heading)),
    );
    const elsewhere = ['Topology', 'HintFamily'];
    const names = [...classes.filter((name) => !elsewhere.includes(name)), ...identifiers(others)].sort();
    expect(names).toEqual(exportsOf(read('lib/index.ts')));
    expect(names.length).toBeLessThanOrEqual(85);
  });

  it.each([
    ['topology', 'lib/entries/topology.ts'],
    ['kubelet', 'lib/entries/kubelet.ts'],
    ['diagnostics', 'lib/entries/diagnostics.ts'],
    ['metrics', 'lib/metrics/index.ts'],
    ['cluster', 'lib/entries/cluster.ts'],
    ['opentelemetry', 'lib/metrics/opentelemetry.ts'],
    ['preload', 'lib/preload.ts'],
  ])('has every export of numalign/%s, and no other', (name, file) => {
    const exported = identifiers(named(section(page, `## numalign/${name}`))).sort();
    expect(exported).toEqual(exportsOf(read(file)));
  });

  it('has every member of every class, and no other', async () => {
    const topology = await numalign.discover({ synthetic: 'core:2 pu:1' });
    const manager = await numalign.openManager({ topology });
    const instances = {
      Manager: manager,
      Grant: await manager.acquire({ cpu: 1 }),
      Pod: await manager.admit({ containers: [{ name: 'main', limits: { memory: 1 } }] }),
      Topology: topology,
      CpuSet: numalign.CpuSet.EMPTY,
      HintFamily: topology.cpuHints({ request: 1, available: topology.cpus }),
    };
    // Of all emitters, and what only subclasses need.
    const inherited = new Set([...Object.getOwnPropertyNames(Object.prototype), 'make', 'self', 'kind']);
    for (const [name, instance] of Object.entries(instances)) {
      const documented = members(name).filter((member) => !member.includes('.'));
      const found = new Set<string>();
      for (
        let at: object | null = instance;
        at && at.constructor !== EventEmitter;
        at = Object.getPrototypeOf(at)
      ) {
        for (const member of Object.getOwnPropertyNames(at)) if (!member.startsWith('_')) found.add(member);
      }
      // Everything has a text of some kind.
      const missing = [...found].filter((member) => !inherited.has(member) && !documented.includes(member));
      expect([name, missing]).toEqual([name, []]);
      expect([name, documented.filter((member) => !(member in instance))]).toEqual([name, []]);
    }
  });

  it('has the static members of the classes, and no other', () => {
    const { CpuSet, HintFamily } = numalign;
    for (const [name, type] of Object.entries({ CpuSet, HintFamily })) {
      const found = Object.getOwnPropertyNames(type).filter(
        (member) => !['length', 'name', 'prototype'].includes(member),
      );
      const documented = members(name).filter((member) => member.startsWith(`${name}.`));
      expect(documented.sort()).toEqual(found.map((member) => `${name}.${member}`).sort());
    }
  });
});

describe('docs/errors.md', () => {
  it('has every warning, and no other', () => {
    const sources = [
      'lib/admission/warnings.ts',
      'lib/decision/memory/hugepages-taken.ts',
      'lib/state/store.ts',
    ]
      .map(read)
      .join('\n');
    const codes = [...sources.matchAll(/^ {2}readonly code: '(\w+)';$/gm)].map(([, code]) => code!);
    expect(named(section(read('docs/errors.md'), '## Warnings')).sort()).toEqual(codes.sort());
  });

  it('says of every code what it means and what to do', () => {
    const page = read('docs/errors.md');
    const codes = rows(page.slice(0, page.indexOf('\n## '))).filter(([first]) => /^`ERR_\w+`$/.test(first!));
    expect(codes.length).toBeGreaterThan(40);
    for (const row of [...codes, ...rows(section(page, '## Warnings'))]) {
      expect([row[0], row.length, row.includes('')]).toEqual([row[0], 3, false]);
    }
  });

  it('names no other code where it goes by what somebody was doing', () => {
    const page = read('docs/errors.md');
    const codes = new Set([...page.matchAll(/^\| `(ERR_\w+)` \|/gm)].map(([, code]) => code!));
    const mentioned = rows(section(page, '## By what you were doing')).flatMap(([, list]) =>
      codeIn(list ?? ''),
    );
    expect(mentioned.length).toBeGreaterThan(20);
    expect(mentioned.filter((code) => !codes.has(code))).toEqual([]);
  });
});

/** The titles of the tests and suites in a test file, in TypeScript, JavaScript or C++. */
function titlesIn(path: string): string[] {
  const text = read(path);
  if (path.endsWith('.cc'))
    return [...text.matchAll(/^TEST(?:_F|_P)?\(\w+, (\w+)\)/gm)].map(([, name]) => name!);
  // The title is the first argument, of `it.each(…)(…)` that of the second call.
  const calls = text.matchAll(
    /(?:\b(?:it|test|describe)(?:\.\w+)*|\))\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1,/g,
  );
  return [...calls].map(([, , title]) => title!.replace(/\\(.)/g, '$1'));
}

describe('docs/differences.md', () => {
  const promises = rows(section(read('docs/differences.md'), '## What the proposals promise'));

  /** The tests of a cell: for each file the parts of titles that are quoted after it. */
  const testsIn = (cell: string) =>
    [...cell.matchAll(/`([^`]+)`([^`]*)/g)].map(([, path, quoted]) => ({
      path: path!,
      titles: [...quoted!.matchAll(/“([^”]+)”/g)].map(([, title]) => title!),
    }));

  it('says of every promise whether it holds here, and names what shows it', () => {
    expect(promises.length).toBeGreaterThan(70);
    for (const [promise, here, shown, ...more] of promises) {
      const answer = /^(yes|differently|no)(?=$|[:;,]| \()/.exec(here!)?.[1];
      expect([promise, here, answer !== undefined, more]).toEqual([promise, here, true, []]);
      if (answer !== 'yes') expect([promise, here]).toEqual([promise, expect.stringMatching(/^\w+: ./)]);
      if (answer !== 'no') expect([promise, testsIn(shown!).length > 0]).toEqual([promise, true]);
    }
  });

  it('names tests and recorded cases that there are', () => {
    const named = promises.flatMap(([, , shown]) => testsIn(shown!));
    expect(named.length).toBeGreaterThan(80);
    for (const { path, titles } of named) {
      expect(path).toMatch(/^(test|native\/test)\//);
      if (path.startsWith('test/conformance/vectors/')) {
        expect([path, existsSync(`${ROOT}${path}`), titles]).toEqual([path, true, []]);
        continue;
      }
      const all = titlesIn(path);
      expect([path, titles.length > 0]).toEqual([path, true]);
      const missing = titles.filter((title) => !all.some((each) => each.includes(title)));
      expect([path, missing]).toEqual([path, []]);
    }
  });
});

describe('THIRD-PARTY-NOTICES.md', () => {
  it('has every package that is installed with numalign, with the licence that it says', () => {
    const { dependencies } = JSON.parse(read('package.json')) as { dependencies: Record<string, string> };
    const licences = Object.keys(dependencies).map((name) => {
      const { license } = JSON.parse(read(`node_modules/${name}/package.json`)) as { license: string };
      return [name, license];
    });
    const table = section(read('THIRD-PARTY-NOTICES.md'), '## Packages that are installed with it');
    expect([...table.matchAll(/^\| \[(\S+)\]\(\S+\) \| (\S+) \|/gm)].map(([, ...row]) => row)).toEqual(
      licences,
    );
  });
});
