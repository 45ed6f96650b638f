// The part of a pod's record about moves: consent, and a move that is under way. Pure.
import type { MoveConsent, PodAssignment, RecordedMove, UpcomingCpus } from '../../account/pod-assignment.js';
import { placeCpus, presentCpus } from '../../account/pod-holdings.js';
import type { Shape } from '../../base/shapes.js';
import { corrupt } from './sealed-json.js';
import { cpuSet, members, nodeSet, nullable, object, text, uuid, whole } from './shapes.js';

export const decodeConsent = members<MoveConsent>(
  { maxPerHour: nullable(whole), noticeMs: whole, exclude: nodeSet },
  'movable.',
);

export const encodeConsent = ({ exclude, ...consent }: MoveConsent) => ({
  ...consent,
  exclude: exclude.toArray(),
});

type Target = Pick<PodAssignment, 'booking' | 'containers'>;
type Change = Pick<PodAssignment, 'upcoming' | 'former'>;

/** `target`: decodes the holdings of a pod. */
export function decodeUpcoming(value: unknown, where: string, target: Shape<Target>): UpcomingCpus {
  const { container, cpus, held, by, move } = object(value, where);
  return {
    container: text(container, 'upcoming.container'),
    cpus: cpuSet(cpus, 'upcoming.cpus'),
    held: cpuSet(held, 'upcoming.held'),
    by: uuid(by, 'upcoming.by'),
    ...(move !== undefined && { move: moveShape(target)(move, 'upcoming.move') }),
  };
}

const moveShape = (target: Shape<Target>) =>
  members<RecordedMove>(
    { for: text, deadline: text, target: nullable(target), refusal: nullable(text) },
    'upcoming.move.',
  );

const shapeOf = ({ booking, containers }: Target) =>
  JSON.stringify([booking !== null, containers.map(({ name }) => name)]);

/**
 * A pod is about to have just what it holds for that, container by container.
 * @throws ERR_STATE_CORRUPT
 */
export function checkTarget(pod: Target & Pick<PodAssignment, 'uid' | 'upcoming'>): void {
  const { uid, upcoming } = pod;
  const target = upcoming?.move?.target;
  if (!target) return;
  const upcomingCpus = upcoming.cpus.union(upcoming.held);
  const cpus = presentCpus(target);
  if (shapeOf(target) !== shapeOf(pod))
    corrupt(`${uid} is about to move to a place for other containers`, target);
  if (!cpus.equals(upcomingCpus))
    corrupt(`${uid} is about to move to CPUs ${cpus}, and holds ${upcomingCpus} for that`, target);
}

/**
 * The change of a pod that is under way. On record, a move that has begun has in the place of its
 * target what it leaves behind.
 */
export function changeUnderWay(recorded: UpcomingCpus | null, pod: Target): Change {
  if (!recorded?.move || recorded.move.target) return { upcoming: recorded };
  const { cpus, held } = recorded;
  return { upcoming: { ...recorded, ...placeCpus(pod) }, former: { cpus, held } };
}

/** `encode`: how what a pod has is written. */
export function encodeChange({ upcoming, former }: Change, encode: (target: Target) => object) {
  const move = upcoming?.move;
  if (!move) return upcoming;
  return { ...upcoming, ...former, move: { ...move, target: move.target && encode(move.target) } };
}
