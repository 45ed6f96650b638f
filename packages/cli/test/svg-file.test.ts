// needs: folders
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allOf, parseXml } from '../../../test/support/xml.js';
import { newFolder, numalign } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

const MACHINE = ['--synthetic', 'package:2 [numa(memory=8GB)] core:2 pu:2'];

/** The class of each CPU, and all texts. */
function pictureOf(svg: string) {
  const all = allOf(parseXml(svg));
  const cpus = all.filter(({ attributes }) => attributes['data-cpu'] !== undefined);
  const classes = cpus.map(({ attributes, children }) => [
    Number(attributes['data-cpu']),
    children.find(({ name }) => name === 'rect')!.attributes.class!.replace('cell ', ''),
  ]);
  const texts = all.filter(({ name }) => name === 'text').map(({ text }) => text);
  return { cpus: Object.fromEntries(classes) as Record<number, string>, texts };
}

describe('numalign topology --svg', () => {
  it('draws a described machine beside its tree, without holders', async () => {
    const file = join(newFolder(), 'machine.svg');
    const { code, stdout, stderr } = await numalign(['topology', ...MACHINE, '--svg', file]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe((await numalign(['topology', ...MACHINE])).stdout);
    const { cpus, texts } = pictureOf(readFileSync(file, 'utf8'));
    expect(cpus).toEqual(Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((cpu) => [cpu, 'plain'])));
    expect(texts).toContain('NUMA node 1');
  });

  it('prints only the picture for "-"', async () => {
    const file = join(newFolder(), 'machine.svg');
    await numalign(['topology', ...MACHINE, '--svg', file]);
    const { code, stdout } = await numalign(['topology', ...MACHINE, '--svg', '-']);
    expect(code).toBe(0);
    expect(stdout).toBe(readFileSync(file, 'utf8'));
  });

  it('draws this machine with the grants of the state folder, which it does not change', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', '0', '--state-dir', folder]);
    await numalign(['admit', '-f', newFile(pod('a <b> & "c"', '500m')), '--state-dir', folder]);
    await numalign(['admit', '-f', newFile(pod('gateway', 1)), '--state-dir', folder]);
    const files = readdirSync(folder);
    const { code, stdout, stderr } = await numalign(['topology', '--svg', '-', '--state-dir', folder]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { cpus, texts } = pictureOf(stdout);
    const { grants } = JSON.parse(
      (await numalign(['status', '--output', 'json', '--state-dir', folder])).stdout,
    );
    const at = grants.findIndex(({ name }: { name: string }) => name === 'gateway');
    expect(cpus[0]).toBe('reserved');
    expect(cpus[Number(grants[at].cpus)]).toBe(`holder-${at}`);
    expect(texts).toContain('gateway');
    expect(texts.join(' ')).toMatch(new RegExp(`${folder} \\(private\\), generation \\d`));
    expect(readdirSync(folder)).toEqual(files);
  });

  it('reports a missing state, and makes none', async () => {
    const folder = join(newFolder(), 'state');
    const { stdout } = await numalign(['topology', '--svg', '-', '--state-dir', folder]);
    expect(pictureOf(stdout).texts.join(' ')).toContain(`no state in ${folder}: nothing is granted`);
    expect(existsSync(folder)).toBe(false);
  });

  it.each([
    ['in a folder that is not there', 'none/machine.svg', 'ENOENT'],
    ['that is a folder', 'folder', 'EISDIR'],
  ])('refuses a file %s, by its name, and prints nothing', async (_, name, errno) => {
    const folder = newFolder();
    mkdirSync(join(folder, 'folder'));
    const path = join(folder, name);
    const { code, stdout, stderr } = await numalign(['topology', ...MACHINE, '--svg', path]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`numalign: cannot write the picture ${path}: ${errno} [ERR_SYSCALL]\n`);
  });

  it('refuses an empty name, and a picture and JSON on one standard output', async () => {
    for (const [args, message] of [
      [['--svg', ''], 'It is empty.'],
      [['--svg', '-', '--output', 'json'], '--svg - and --output json cannot both be the standard output'],
    ] as const) {
      const { code, stdout, stderr } = await numalign(['topology', ...MACHINE, ...args]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(message);
    }
  });
});

describe('numalign plan --svg', () => {
  it('draws what a pod with --replace would get, not what it has', async () => {
    const folder = newFolder();
    const state = ['--state-dir', folder];
    await numalign(['configure', '--managed', '0-1', '--reserved', '0', ...state]);
    await numalign(['admit', '-f', newFile(pod('one', 1)), ...state]);
    const less = newFile(pod('one', '100m'));
    const { stdout } = await numalign(['plan', '-f', less, '--replace', ...state, '--svg', '-']);
    expect(pictureOf(stdout).cpus[1]).toBe('free');
  });

  it('outlines what each pod would get on an otherwise empty machine', async () => {
    const file = join(newFolder(), 'plan.svg');
    const pods = newFile(documents(pod('one', 2), pod('two', 3)));
    const args = ['plan', '-f', pods, ...MACHINE, '--reserved', '0', '--policy', 'single-numa-node'];
    const { code, stdout } = await numalign([...args, '--svg', file]);
    expect(code).toBe(0);
    expect(stdout).toBe((await numalign(args)).stdout);
    const { pods: planned } = JSON.parse(
      (await numalign([...args, '--output', 'json', '--svg', file])).stdout,
    );
    expect(planned.map(({ containers }: any) => containers[0].cpus)).toEqual(['2-3', '4-6']);
    const { cpus, texts } = pictureOf(readFileSync(file, 'utf8'));
    expect(cpus).toEqual({
      ...{ 0: 'reserved', 1: 'free', 2: 'holder-0 highlighted', 3: 'holder-0 highlighted' },
      ...{ 4: 'holder-1 highlighted', 5: 'holder-1 highlighted', 6: 'holder-1 highlighted', 7: 'free' },
    });
    expect(texts).toEqual(
      expect.arrayContaining(['pod one (planned)', 'pod two (planned)', 'CPUs 2-3; 16 MiB on 0']),
    );
  });

  it('leaves a rejected pod out of the picture, and says so', async () => {
    const file = newFile(documents(pod('small', 1), pod('large', 20)));
    const { code, stdout } = await numalign(['plan', '-f', file, ...MACHINE, '--svg', '-']);
    expect(code).toBe(1);
    const { cpus, texts } = pictureOf(stdout);
    expect(Object.values(cpus).filter((className) => className.startsWith('holder-'))).toHaveLength(1);
    expect(texts).toContain('rejected: pod large');
    expect(texts.some((text) => text.startsWith('pod large'))).toBe(false);
  });

  it('shows the grants on this machine, and an admitted pod as such', async () => {
    const folder = newFolder();
    const named = (name: string) => newFile(pod(name, 1, `, uid: uid-of-${name}`));
    const files = newFile(
      documents(pod('here', '500m', ', uid: uid-of-here'), pod('there', '500m', ', uid: uid-of-there')),
    );
    await numalign(['admit', '-f', named('gateway'), '--state-dir', folder]);
    await numalign([
      'admit',
      '-f',
      newFile(pod('here', '500m', ', uid: uid-of-here')),
      '--state-dir',
      folder,
    ]);
    const { code, stdout } = await numalign(['plan', '-f', files, '--state-dir', folder, '--svg', '-']);
    expect(code).toBe(0);
    const { cpus, texts } = pictureOf(stdout);
    expect(Object.values(cpus).filter((className) => className === 'holder-0')).toHaveLength(1);
    expect(texts).toEqual(
      expect.arrayContaining(['gateway', 'pod here (admitted already)', 'pod there (planned)']),
    );
  });

  it('refuses a file that cannot be written, with its code', async () => {
    const path = join(newFolder(), 'none', 'plan.svg');
    const { code, stdout, stderr } = await numalign([
      'plan',
      '-f',
      newFile(pod('one', 1)),
      ...MACHINE,
      '--svg',
      path,
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toBe(`numalign: cannot write the picture ${path}: ENOENT [ERR_SYSCALL]\n`);
  });
});

// The picture in docs/vocabulary.md.
it('draws docs/plan.svg: two pods on a machine of two NUMA nodes', async () => {
  const pods = `kind: Pod
metadata: {name: gateway}
spec:
  initContainers:
    - {name: setup, resources: {limits: {cpu: 2, memory: 1Gi}}}
  containers:
    - {name: main, resources: {limits: {cpu: 3, memory: 2Gi}}}
    - {name: log, resources: {limits: {cpu: 500m, memory: 1Gi}}}
---
kind: Pod
metadata: {name: trainer}
spec:
  containers:
    - {name: main, resources: {limits: {cpu: 14, memory: 12Gi}}}
`;
  const machine = 'package:2 [numa(memory=16GiB)] l3:2 core:4 pu:2';
  const args = ['plan', '-f', newFile(pods), '--synthetic', machine, '--reserved', '0,16', '--svg', '-'];
  const { code, stdout } = await numalign(args);
  expect(code).toBe(0);
  // To change the picture on purpose: vitest run -u test/cli/svg-file.test.ts
  await expect(stdout).toMatchFileSnapshot('../../../docs/plan.svg');
});
