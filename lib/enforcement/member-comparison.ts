// Comparison of the shared members with where they should run.
import { NumalignError } from '../base/errors.js';
import type { Found } from './drift.js';
import type { Compared } from './group-comparison.js';
import type { Confinement, StrayMember } from './members/confinement.js';
import { stuckText } from './members/member-texts.js';

export function memberFound(
  { member, process, threads, repair }: StrayMember,
  { pool, taken }: Confinement,
): Found {
  const name = member.kind === 'process' ? ` (${member.command})` : ` in ${member.path}`;
  return {
    kind: 'member',
    uid: null,
    what: `${threads} threads of process ${process.pid}${name} are not in the shared pool ${pool}`,
    key: `member ${process.pid} ${process.start} masks ${taken}`,
    repair: () => {
      const { moved, reason } = repair();
      if (reason === undefined) return moved;
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText({ member, reason, names: [] }), {
        value: member,
      });
    },
  };
}

export function choicesFound({ confiner, state }: Compared, { taken }: Confinement): Found[] {
  const late = confiner.restoreChoices(state, true);
  if (late === 0) return [];
  return [
    {
      kind: 'member',
      uid: null,
      what: `${late} threads of this process may run on CPUs that they did not choose`,
      key: `choices ${taken}`,
      repair: () => confiner.restoreChoices(state, false),
    },
  ];
}
