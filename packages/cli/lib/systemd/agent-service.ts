// AgentService: the unit of the agent that frees the CPUs of the dead, and whether it runs here.
import { existsSync, lstatSync } from 'node:fs';
import { MACHINE_STATE_DIR } from 'numalign';

export const AGENT_UNIT = 'numalign-agent.service';

// systemd has a link for each unit while that is active.
const ACTIVE = `/run/systemd/units/invocation:${AGENT_UNIT}`;

/** The service that hears of the end of each owner in a folder; null if none does. */
export function agentOf(stateDir: string): string | null {
  const isActive = stateDir === MACHINE_STATE_DIR && lstatSync(ACTIVE, { throwIfNoEntry: false });
  return isActive ? AGENT_UNIT : null;
}

// systemd makes it at boot.
export const hasSystemd = (): boolean => existsSync('/run/systemd/system');
