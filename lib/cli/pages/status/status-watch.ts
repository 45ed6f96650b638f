// numalign status --watch: what happens on the grants' CPUs, again and again until told to end.
// Only looks.
import { setTimeout } from 'node:timers/promises';
import { openManager } from '../../../index.js';
import { print } from '../../terminal/output.js';
import { Screen } from '../../terminal/screen.js';
import { abortedByEnd } from '../../terminal/signals.js';
import { stdoutPage } from '../../terminal/terminal.js';
import { jsonLine } from '../../terminal/text.js';
import { type Watched, watchText } from './watch-text.js';

export interface WatchOptions {
  readonly stateDir: string;
  readonly seconds: number;
  readonly output: 'text' | 'json';
}

/** Returns when a signal ends the process (SIGINT, SIGTERM, SIGHUP, SIGQUIT). */
export async function watchStatus({ stateDir, seconds, output }: WatchOptions): Promise<void> {
  const { signal, stop } = abortedByEnd();
  let screen: Screen | undefined;
  let close = () => {};
  try {
    const view = await openManager({ stateDir, readOnly: true });
    close = () => view.close();
    const watched = async () => {
      const audits = await view.audits();
      return { stateDir, seconds, time: new Date(), status: view.status(), audits };
    };
    const first = await watched();
    if (output === 'text' && Screen.isThere()) screen = new Screen();
    const show = (one: Watched) => {
      if (screen) screen.show(() => pageOf(one));
      else if (output === 'json') printJson(one);
      else print(`${pageOf(one)}\n`);
    };
    // Nothing has happened yet, but who is there can be seen.
    screen?.show(() => pageOf(first));
    while (await pause(seconds, signal)) {
      show(await watched());
    }
  } finally {
    screen?.close();
    close();
    stop();
  }
}

// False where it was ended.
async function pause(seconds: number, signal: AbortSignal): Promise<boolean> {
  return setTimeout(seconds * 1000, true, { signal }).catch((error: unknown) => {
    if (signal.aborted) return false;
    throw error;
  });
}

function pageOf(watched: Watched): string {
  return watchText(watched, stdoutPage());
}

// One document a line.
function printJson({ stateDir, time, status, audits }: Watched): void {
  const grants = audits.flatMap((audit) => {
    const grant = status.grants.find(({ uid }) => uid === audit.grant);
    if (!grant) return [];
    const { uid, name, cpus, owner, flags } = grant;
    return [{ uid, name, cpus, owner, flags, audit }];
  });
  print(jsonLine({ time, stateDir, generation: status.exists ? status.generation : null, grants }));
}
