// numalign status --watch: what happens on the grants' CPUs, again and again until told to end. Only looks.
import { setTimeout } from 'node:timers/promises';
import type { GrantAudit } from '../audit/account.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import { NumalignError } from '../errors.js';
import { discover } from '../topology.js';
import { abortedByEnd } from './signals.js';
import { readState, type StateView } from './state-view.js';
import { stdoutColors, stdoutWidth } from './terminal.js';
import { watchText } from './watch-text.js';

export interface WatchOptions {
  readonly stateDir: string;
  readonly seconds: number;
  readonly output: 'text' | 'json';
}

/** Returns when the process is told to end (SIGINT, SIGTERM, SIGHUP). */
export async function watchStatus({ stateDir, seconds, output }: WatchOptions): Promise<void> {
  const { signal, stop } = abortedByEnd();
  try {
    const topology = await discover();
    const watched = new WatchedGrants(topology);
    const look = () => {
      const view = readState(stateDir, topology);
      if (view?.assignments.settings.simulated) throw simulated(stateDir);
      return { view, audits: watched.look(view?.assignments.pods ?? []) };
    };
    const show = output === 'json' ? printJson : isScreen() ? drawPage : printPage;
    look();
    while (await pause(seconds, signal)) show({ stateDir, seconds, time: new Date(), ...look() });
  } finally {
    stop();
  }
}

/** What is known at one moment. */
export interface Watched {
  readonly stateDir: string;
  readonly seconds: number;
  readonly time: Date;
  /** Undefined where there is no state. */
  readonly view: StateView | undefined;
  /** Of the grants whose owners live: what has happened since the last look. */
  readonly audits: readonly GrantAudit[];
}

// False where it was ended.
async function pause(seconds: number, signal: AbortSignal): Promise<boolean> {
  return setTimeout(seconds * 1000, true, { signal }).catch((error: unknown) => {
    if (signal.aborted) return false;
    throw error;
  });
}

function isScreen(): boolean {
  return process.stdout.isTTY === true && process.env.TERM !== 'dumb';
}

function pageOf(watched: Watched): string {
  return watchText(watched, { width: stdoutWidth(), colors: stdoutColors() });
}

function printPage(watched: Watched): void {
  process.stdout.write(`${pageOf(watched)}\n`);
}

// From the upper left corner over what was there, so that nothing flickers; what is below the screen would make it scroll.
function drawPage(watched: Watched): void {
  const lines = pageOf(watched).trimEnd().split('\n');
  const shown = lines.slice(0, Math.max((process.stdout.rows ?? lines.length) - 1, 1));
  process.stdout.write(`\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
}

// One document a line.
function printJson({ stateDir, time, view, audits }: Watched): void {
  const grants = audits.flatMap((audit) => {
    const grant = view?.grants.find(({ id }) => id === audit.grant);
    if (!grant) return [];
    const { id, name, cpus, owner, flags } = grant;
    return [{ id, name, cpus, owner, flags, audit }];
  });
  process.stdout.write(`${JSON.stringify({ time, stateDir, generation: view?.generation ?? null, grants })}\n`);
}

function simulated(stateDir: string): NumalignError {
  return new NumalignError(
    'ERR_SIMULATED_MACHINE',
    `the state in ${stateDir} is of a simulated machine, on which nothing happens`,
    { value: stateDir },
  );
}
