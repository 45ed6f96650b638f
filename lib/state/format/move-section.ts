// The part of a pod's record about moves: consent, and a move that is under way. Pure.
import type { Move, MoveConsent, PodAssignment, UpcomingCpus } from '../../account/pod-assignment.js';
import { presentCpus } from '../../account/pod-holdings.js';
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
  members<Move>(
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

/** `encode`: how what a pod has is written. */
export function encodeUpcoming(upcoming: UpcomingCpus, encode: (target: Target) => object) {
  const { move } = upcoming;
  if (!move) return upcoming;
  return { ...upcoming, move: { ...move, target: move.target && encode(move.target) } };
}
