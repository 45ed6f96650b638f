// AgentService: the unit of the agent that frees the CPUs of the dead, and whether it runs here.
import { lstatSync } from 'node:fs';
import { MACHINE_STATE_DIR } from 'numalign';

export const AGENT_UNIT = 'numalign-agent.service';

// systemd has a link for each unit while that is active.
const ACTIVE = `/run/systemd/units/invocation:${AGENT_UNIT}`;

export const isAgentActive = (): boolean => lstatSync(ACTIVE, { throwIfNoEntry: false }) !== undefined;

/** True if the service hears of the end of a grant in this folder. */
export const isReturnedByAgent = (stateDir: string): boolean =>
  stateDir === MACHINE_STATE_DIR && isAgentActive();
