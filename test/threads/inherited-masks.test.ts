// needs: machine
// Masks from numalign that a process has though nothing on record shows them any more: no wishes.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/machine/affinity.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { canUnshare } from '../support/rights.js';

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const ACTOR = at('actor.mjs');
const LIBRARIES = ['../../dist/index.js', '../../dist/entries/diagnostics.js'].map(at);

const ALL = String(affinity());
const FIRST = String(affinity().first);
const WITHOUT_FIRST = String(affinity().difference(CpuSet.parse(FIRST)));

class Actor {
  readonly process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(stateDir: string, prefix: readonly string[] = []) {
    const [command, ...args] = [...prefix, process.execPath, ACTOR, ...LIBRARIES, stateDir];
    // A session of its own, which the process that inherits its orphans is not in.
    this.process = spawn(command!, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true });
    onTestFinished(() => void this.process.kill('SIGKILL'));
    this.#answers = createInterface(this.process.stdout!)[Symbol.asyncIterator]();
  }

  async does(...action: string[]): Promise<string> {
    this.process.stdin!.write(`${JSON.stringify(action)}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`the actor has ended at ${action}`);
    return value;
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.process.kill(signal);
    await once(this.process, 'exit');
  }
}

// What doctor says of the mask, whether a request that is too large hears of it, and the grant of one CPU.
const ASKER = `const [library, diagnostics, stateDir] = process.argv.slice(1);
  const { diagnose } = await import(diagnostics);
  const { findings } = await diagnose({ stateDir, cgroupRoot: null });
  const { openManager } = await import(library);
  const manager = await openManager({ stateDir, cgroupRoot: null });
  const error = await manager.acquire({ cpu: ${affinity().size + 1} }).catch((thrown) => thrown);
  console.log(String((await manager.acquire({ cpu: 1 })).cpus));
  console.log(error.message.includes('was given the mask') ? 'a wish' : 'no wish');
  console.log(findings.find(({ check }) => check === 'allowed-cpus').status);
  process.exit();`;

/** A state folder, and a shell that runs a program with numalign once it is told to. */
class Scene {
  readonly #folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  readonly stateDir = join(this.#folder, 'state');
  readonly #pipes = ['in', 'out'].map((name) => join(this.#folder, name));

  constructor() {
    onTestFinished(() => rmSync(this.#folder, { recursive: true, force: true }));
    execFileSync('mkfifo', this.#pipes);
  }

  actor(...prefix: string[]): Actor {
    return new Actor(this.stateDir, prefix);
  }

  /** Another process with a grant of the first CPU, which keeps members off it. */
  async holder(): Promise<Actor> {
    const holder = this.actor();
    await holder.does('open', 'alone');
    expect(await holder.does('acquire')).toBe(FIRST);
    return holder;
  }

  /** A member that this holder keeps off the first CPU. */
  async member(): Promise<Actor> {
    const member = this.actor();
    await member.does('open');
    return member;
  }

  /** A member that is on a grant of its own, started by the command `prefix`. */
  async pinned(...prefix: string[]): Promise<Actor> {
    const owner = this.actor(...prefix);
    for (const action of ['open', 'acquire', 'pin']) await owner.does(action);
    return owner;
  }

  /** The command of the shell. */
  shell(...prefix: string[]): string[] {
    const [input, output] = this.#pipes;
    const program = [process.execPath, '--input-type=module', '-e', ASKER, ...LIBRARIES, this.stateDir];
    const script = `read -r _ < ${input}; "$@" > ${output}; true`;
    return [...prefix, 'sh', '-c', script, 'sh', ...program];
  }

  /** What the program of the shell gets, and what doctor says in it. */
  async answer(): Promise<string[]> {
    const [input, output] = this.#pipes;
    await writeFile(input!, 'go\n');
    return (await readFile(output!, 'utf8')).trim().split('\n');
  }
}

const NO_WISH = [FIRST, 'no wish', 'ok'];

/** A member that has left the first CPU to a grant. */
async function squeezed() {
  const scene = new Scene();
  const member = await scene.member();
  const holder = await scene.holder();
  await member.does('until', WITHOUT_FIRST);
  return { scene, member, holder };
}

describe.runIf(affinity().size > 1)('the shell of a member', () => {
  it('keeps to no mask of its member that closed before the grant ended', async () => {
    const { scene, member, holder } = await squeezed();
    await member.does('start', ...scene.shell());
    await member.does('close');
    await holder.end();
    expect(await scene.answer()).toEqual(NO_WISH);
  });

  it('keeps to no mask of its member that closed after the grant ended', async () => {
    const { scene, member, holder } = await squeezed();
    await member.does('start', ...scene.shell());
    await holder.does('release');
    await member.does('until', ALL);
    await member.does('close');
    expect(await scene.answer()).toEqual(NO_WISH);
  });

  it('keeps to no mask that its member had kept when it started it, after all had ended', async () => {
    const { scene, member, holder } = await squeezed();
    await member.does('close');
    await holder.does('release');
    await member.does('start', ...scene.shell());
    expect(await scene.answer()).toEqual(NO_WISH);
  });

  it('keeps to no mask of its member that was killed', async () => {
    const { scene, member, holder } = await squeezed();
    await member.does('start', ...scene.shell());
    await member.end();
    await holder.end();
    expect(await scene.answer()).toEqual(NO_WISH);
  });
});

describe.runIf(affinity().size > 1)('a child on a grant', () => {
  it.each(['release', 'end'] as const)('keeps to no CPUs of the grant after its %s', async (way) => {
    const scene = new Scene();
    const owner = await scene.pinned();
    await owner.does('start', ...scene.shell());
    if (way === 'release') await owner.does('release');
    else await owner.end();
    expect(await scene.answer()).toEqual(NO_WISH);
  });

  it('keeps to no CPUs of the grant after its end though it leads a process group', async () => {
    const scene = new Scene();
    const owner = await scene.pinned();
    await owner.does('start', ...scene.shell('bash', '-c', 'set -m; "$@" & :', 'bash'));
    await owner.end();
    expect(await scene.answer()).toEqual(NO_WISH);
  });

  // Below the first process of a pid namespace, which is in the same session unless `setsid` begins one.
  const below = (first: string, ...command: string[]) => [
    ...['unshare', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', first, 'sh'],
    ...command,
  ];

  it.runIf(canUnshare)(
    "keeps to no CPUs of the grant after another process has its owner's pid",
    async () => {
      const scene = new Scene();
      // The owner has pid 3 there, then `sleep`.
      const script = '"$@"; echo 2 >/proc/sys/kernel/ns_last_pid; sleep 600 & echo $!; wait';
      const owner = await scene.pinned(...below('setsid "$@"; :', 'sh', '-c', script, 'sh'));
      await owner.does('start', ...scene.shell());
      expect(await owner.does('end')).toBe('3');
      expect(await scene.answer()).toEqual(NO_WISH);
    },
  );

  it.runIf(canUnshare)(
    'keeps to no CPUs of the grant after the end of an owner in the session of the first process of all',
    async () => {
      const scene = new Scene();
      // The owner leads a process group, as with job control.
      const owner = await scene.pinned(
        ...below('bash -c \'set -m; "$@"; :\' bash "$@"; echo ended; sleep 600'),
      );
      await owner.does('start', ...scene.shell());
      expect(await owner.does('end')).toBe('ended');
      expect(await scene.answer()).toEqual(NO_WISH);
    },
  );
});

// This process has numalign, like a member that has closed: the shell has not.
async function inShell(command: readonly string[]): Promise<void> {
  const shell = spawn('sh', ['-c', '"$@"; true', 'sh', ...command], { stdio: 'ignore' });
  onTestFinished(() => void shell.kill());
  await once(shell, 'spawn');
}

describe.runIf(affinity().size > 1)('taskset', () => {
  const chosen = (scene: Scene) => scene.shell('taskset', '-c', WITHOUT_FIRST);
  const WISH = [String(CpuSet.parse(WITHOUT_FIRST).first), 'a wish', 'warning'];

  it('is meant in a shell of its own, though members had this very mask then', async () => {
    const scene = new Scene();
    const holder = await scene.holder();
    const member = await scene.member();
    await member.does('until', WITHOUT_FIRST);
    await inShell(chosen(scene));
    await holder.does('release');
    await member.does('until', ALL);
    expect(await scene.answer()).toEqual(WISH);
  });

  it.each(['before', 'after'] as const)(
    'is meant in a child of a member, %s members had this mask',
    async (when) => {
      const scene = new Scene();
      const member = await scene.member();
      const squeeze = async () => {
        const holder = await scene.holder();
        await member.does('until', WITHOUT_FIRST);
        await holder.does('release');
        await member.does('until', ALL);
      };
      if (when === 'after') await squeeze();
      await new Promise((resolve) => setTimeout(resolve, 400));
      await member.does('start', ...chosen(scene));
      await new Promise((resolve) => setTimeout(resolve, 400));
      if (when === 'before') await squeeze();
      expect(await scene.answer()).toEqual(WISH);
    },
  );

  it.each([
    ['command', []],
    ['session', ['setsid']],
  ])('is meant in the next %s of a script whose last command had a grant of this CPU', async (_, prefix) => {
    const scene = new Scene();
    const owner = await scene.pinned('taskset', '-c', WITHOUT_FIRST);
    await inShell([...prefix, ...chosen(scene)]);
    await owner.end();
    expect(await scene.answer()).toEqual(WISH);
  });
});
