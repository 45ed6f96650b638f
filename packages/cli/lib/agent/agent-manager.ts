// The manager of `numalign agent`, from its beginning until a signal ends the agent.
import { MACHINE_STATE_DIR, type Manager, type ManagerOptions, openManager } from 'numalign';
import { type DeviceFlags, devicesOf } from '../arguments/devices.js';
import { managerOptions, type OpeningFlags } from '../arguments/placement-flags.js';
import type { StateFlags } from '../arguments/state-dir.js';
import { openingLines } from '../pages/pod-text.js';
import { tell } from '../terminal/output.js';
import { abortAtEnd } from '../terminal/signals.js';

export interface AgentFlags extends OpeningFlags, DeviceFlags, StateFlags {
  besideKubelet?: boolean;
}

/** Resolves when a signal ends the agent (SIGINT, SIGTERM, SIGHUP, SIGQUIT). */
type UntilEnded = () => Promise<unknown>;

/** Opens a manager, whose errors it tells, and closes it after `work`. */
export async function withManager(
  flags: AgentFlags,
  more: Pick<ManagerOptions, 'cpuManagerReconcilePeriod'>,
  work: (manager: Manager, untilEnded: UntilEnded) => Promise<void>,
): Promise<void> {
  const { stateDir = MACHINE_STATE_DIR, besideKubelet } = flags;
  const manager = await openManager({
    ...(await managerOptions(flags)),
    ...more,
    devices: await devicesOf(flags),
    stateDir,
    ...(besideKubelet !== undefined && { besideKubelet }),
  });
  openingLines(manager.warnings).forEach(tell);
  const { signal, stop } = abortAtEnd();
  const hasEnded = new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  manager.on('error', ({ message }) => tellOnce(message));
  try {
    await work(manager, async () => signal.aborted || hasEnded);
  } finally {
    manager.close();
    stop();
  }
}

let last: string | undefined;

/** The manager repeats an error at each look: tells only changes. */
export function tellOnce(message: string): void {
  if (message !== last) tell(message);
  last = message;
}
