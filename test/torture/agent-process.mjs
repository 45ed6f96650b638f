// An agent as the harness sees it: started, listened to, stopped, killed.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childOf, signal } from './processes.mjs';
import { shimEnvironment } from './shim.mjs';
import { asUser } from './users.mjs';

const SCRIPT = fileURLToPath(new URL('agent.mjs', import.meta.url));
// A pid alone does not identify the first process of a pid namespace.
const NAMESPACES = ['unshare', '-pmf', '--kill-child=SIGKILL', '--mount-proc'];
// A new /proc: remounting the old one would change it for every process.
const HIDING = ['unshare', '-m', 'sh', '-c', 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', 'sh'];

export const now = () => Number(process.hrtime.bigint());

export class AgentProcess {
  number;
  slot;
  /** The step at which it is to die, if one is chosen. */
  fail;
  isReady = false;
  /** True once it has released everything and is idle. */
  isResting = false;
  /** Its settings, in readable form. */
  traits;
  /** True if its calls fail again and again. */
  isFaulty;
  /** Set just before the kill. */
  killedAt;
  isStopped = false;
  /** Resolves once the process is dead and all of its output is read. */
  ended;
  #process;
  #pid;
  #log;

  /**
   * `setup`: the argument of agent.mjs; `fail`, `random`: where the shim ends it; `errors`: how
   * often a step fails; `bootId`: a file; `log`: a file of its own; `user`: see users.mjs;
   * `isBlind`: its /proc shows no other processes.
   */
  constructor({
    number,
    slot,
    setup,
    fail,
    random,
    errors,
    bootId,
    log,
    user,
    isBlind,
    inNamespaces,
    environment,
    onEvent,
  }) {
    this.number = number;
    this.slot = slot;
    this.fail = fail;
    this.traits = JSON.stringify({ user, isBlind, inNamespaces, errors, bootId: bootId !== undefined });
    this.isFaulty = errors?.path !== undefined;
    this.#log = log;
    const namespaces = inNamespaces ? NAMESPACES : isBlind ? HIDING : [];
    const as = user === undefined ? [] : asUser(user);
    const { LD_PRELOAD, ...shim } = shimEnvironment({
      folder: setup.stateDir,
      fail,
      random,
      errors,
      bootId,
      log,
    });
    // Only for the agent.
    const preload = ['env', `LD_PRELOAD=${LD_PRELOAD}`];
    const command = [...namespaces, ...as, ...preload, process.execPath, SCRIPT, JSON.stringify(setup)];
    const env = { ...process.env, ...environment, ...shim };
    this.#process = spawn(command[0], command.slice(1), { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.inNamespaces = inNamespaces;
    this.#pid = inNamespaces ? undefined : this.#process.pid;
    this.#process.stdin.on('error', () => {});
    let complaint = '';
    this.#process.stderr.on('data', (text) => {
      complaint += text;
    });
    const lines = createInterface({ input: this.#process.stdout });
    lines.on('line', (line) => {
      // A write may be cut short by a kill.
      if (!line.endsWith('}')) return;
      const event = JSON.parse(line);
      if (event.event === 'ready') this.isReady = true;
      if (event.event === 'rests') this.isResting = true;
      onEvent(this, event);
    });
    this.ended = new Promise((resolve) => {
      // 'close' comes after all output is read.
      this.#process.once('close', (code, killedBy) => resolve({ code, killedBy, complaint }));
    });
  }

  /** Its pid in this namespace; undefined while that is unknown. */
  get pid() {
    if (this.#pid === undefined && this.#process.exitCode === null) this.#pid = childOf(this.#process.pid);
    return this.#pid;
  }

  kill() {
    this.killedAt ??= now();
    if (this.pid === undefined) this.#process.kill('SIGKILL');
    else signal(this.pid, 'SIGKILL');
  }

  stop() {
    if (this.pid === undefined || this.killedAt !== undefined) return;
    this.isStopped = true;
    signal(this.pid, 'SIGSTOP');
  }

  continue() {
    if (!this.isStopped) return;
    this.isStopped = false;
    signal(this.pid, 'SIGCONT');
  }

  tell(message) {
    if (this.#process.stdin.writable) this.#process.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /**
   * The shim's log: the kinds of steps that it met, and the step at which the process died: { died,
   * when, time }.
   */
  steps() {
    let lines;
    try {
      lines = readFileSync(this.#log, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    } catch (error) {
      if (error.code === 'ENOENT') return { met: [], death: undefined };
      throw error;
    }
    return {
      met: lines.flatMap(({ met }) => met ?? []),
      death: lines.find(({ died }) => died !== undefined),
    };
  }
}
