// Live: what of a configuration applies to the next container, without a restart.
import { isDeepStrictEqual } from 'node:util';
import { type Manager, openManager } from 'numalign';
import { PLACEMENT_OPTIONS, type PlacementOptions } from 'numalign/tools';
import type { ContainerPolicy } from '../placement/container-policy.js';
import { parseRules } from '../placement/rules.js';
import type { Configuration } from './configuration.js';
import { FIELD_NAMES, type FieldName, rowOf, type Values } from './fields.js';

/** What may change between two containers. */
export interface LiveConfiguration extends ContainerPolicy {
  readonly values: Values;
  /** All options of placement that are in effect. */
  readonly effective: Manager['placement'];
  /** The fields whose values have an effect at the next start. */
  readonly stale: readonly string[];
}

const MANAGER_ONLY = ['cpuManagerPolicy', 'memoryManagerPolicy'] as const;
const OF_REQUESTS = (Object.keys(PLACEMENT_OPTIONS) as (keyof PlacementOptions)[]).filter(
  (name) => PLACEMENT_OPTIONS[name].by === 'both',
);

/** Of the configuration with which the manager was opened: nothing has changed. */
export const firstLive = ({ values }: Configuration, { placement }: Manager): LiveConfiguration => ({
  values,
  placement: {},
  rules: parseRules(values.rules, 'rules'),
  effective: placement,
  stale: [],
});

/**
 * Checks the configuration on this machine, as if it were empty.
 * @throws NumalignError ERR_INVALID_OPTION for what does not go on this machine; ERR_CONFIG_CONFLICT
 *   if its settings leave no shared pool
 */
export async function liveOf(
  next: Configuration,
  manager: Pick<Manager, 'topology' | 'placement'>,
  atStart: Values,
): Promise<LiveConfiguration> {
  const { topology, placement: opened } = manager;
  const { placement, settings } = next.manager;
  const view = await openManager({ ...placement, ...settings, topology, readOnly: true, stateDir: null });
  try {
    // Only a plan checks the placement.
    view.plan({ uid: 'check', containers: [{ name: 'check' }] });
    const wanted = view.placement;
    const effective = { ...wanted };
    for (const name of MANAGER_ONLY) Object.assign(effective, { [name]: opened[name] });
    return {
      values: next.values,
      rules: parseRules(next.values.rules, 'rules'),
      placement: Object.fromEntries(
        OF_REQUESTS.filter((name) => !isDeepStrictEqual(wanted[name], opened[name])).map((name) => [
          name,
          wanted[name],
        ]),
      ),
      effective,
      stale: [
        ...MANAGER_ONLY.filter((name) => wanted[name] !== opened[name]),
        ...staleFields(atStart, next.values),
      ],
    };
  } finally {
    view.close();
  }
}

const START: readonly FieldName[] = FIELD_NAMES.filter(
  (name) => rowOf(name).part === 'start' && !(MANAGER_ONLY as readonly string[]).includes(name),
);

const staleFields = (atStart: Values, now: Values) =>
  START.filter((name) => !isDeepStrictEqual(atStart[name], now[name]));
