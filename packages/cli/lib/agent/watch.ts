// Frees the CPUs of the dead, and serves nothing.
import { MACHINE_STATE_DIR, type Manager, openManager } from 'numalign';
import { print } from '../terminal/output.js';
import { jsonLine, printable } from '../terminal/text.js';
import { type AgentFlags, withManager } from './agent-manager.js';

/** Returns when a signal ends the agent. */
export async function watch(flags: AgentFlags): Promise<void> {
  await untilThereIsState(flags.stateDir ?? MACHINE_STATE_DIR);
  await withManager(flags, {}, async (manager, untilEnded) => {
    // With a listener the manager takes back the grants of ended cgroups too.
    manager.on('change', () => {});
    print(readyText(manager, flags.output));
    await untilEnded();
  });
}

// The first manager records the machine's settings, which a user chooses.
async function untilThereIsState(stateDir: string): Promise<void> {
  const view = await openManager({ stateDir, readOnly: true });
  try {
    if (!view.status().exists) await new Promise((resolve) => view.once('change', resolve));
  } finally {
    view.close();
  }
}

function readyText({ stateDir, scope }: Manager, output: AgentFlags['output']): string {
  if (output === 'json') return jsonLine({ pid: process.pid, stateDir, scope });
  return `watching ${printable(stateDir)} (${scope})\n`;
}
