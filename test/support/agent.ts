// Starts test/support/agent.mjs and talks to it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const SCRIPT = fileURLToPath(new URL('agent.mjs', import.meta.url));

export interface AgentError {
  code: string;
  message: string;
}

export class Agent {
  readonly process: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  /** `prefix`: a command to start it under, such as unshare; `script`: another copy of it. */
  constructor(prefix: string[] = [], script = SCRIPT) {
    const [command, ...args] = [...prefix, process.execPath, script];
    this.process = spawn(command!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#answers = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
    onTestFinished(() => void this.process.kill('SIGKILL'));
  }

  /** The answer to one command. */
  async ask(verb: string, argument?: unknown): Promise<{ value?: any; error?: AgentError }> {
    this.process.stdin!.write(`${JSON.stringify([verb, argument])}\n`);
    return JSON.parse((await this.#answers.next()).value as string);
  }

  /** The answer's value. Throws where the agent reports an error. */
  async tell(verb: string, argument?: unknown): Promise<any> {
    const { value, error } = await this.ask(verb, argument);
    if (error) throw new Error(`${verb}: ${error.code} ${error.message}`);
    return value;
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
  }
}
