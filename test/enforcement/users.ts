// Processes of several users, and a state folder that a group of them shares.
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';
import { AGENT, asUser, forStrangers } from '../support/strangers.js';
import { child } from './members.js';

export const [GROUP, ALICE, BOB] = [54330, 54331, 54332];

/** Where root's choices of cgroup roots are. */
export const CHOICES = '/run/numalign-root';

/** What root has chosen about a state folder. */
export function choiceFile(stateDir: string): string {
  const name = encodeURIComponent(stateDir);
  return join(CHOICES, name.length < 252 ? name : createHash('sha256').update(stateDir).digest('hex'));
}

/** A state folder of root's that the group may use. */
export function sharedFolder(stateDir = makeStateDir()): string {
  mkdirSync(stateDir, { recursive: true });
  chmodSync(join(stateDir, '..'), 0o755);
  chownSync(stateDir, 0, GROUP);
  chmodSync(stateDir, 0o2770);
  onTestFinished(() => {
    rmSync(choiceFile(stateDir), { force: true });
    if (existsSync(CHOICES) && readdirSync(CHOICES).length === 0) rmdirSync(CHOICES);
  });
  return stateDir;
}

/**
 * A manager in a process of a user of the group, or of root. `prefix`: a command to start it under.
 */
export async function agentOf(
  user: number | undefined,
  stateDir: string,
  options = {},
  prefix: string[] = [],
) {
  const as = user === undefined ? [] : asUser(user, GROUP);
  const agent = new Agent([...prefix, ...as], forStrangers(AGENT));
  const pid: number = await agent.tell('open', { stateDir, ...options });
  return { agent, pid, tell: (verb: string, argument?: unknown) => agent.tell(verb, argument) };
}

export const sleeper = (user?: number) =>
  child('env', [...(user === undefined ? [] : asUser(user)), 'sleep', '1000']).pid!;
