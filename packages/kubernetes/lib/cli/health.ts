// Health: what probes are told.
import { type Answer, PLAIN_TEXT } from '@numalign/page/listening';
import type { Condition } from '../base/condition.js';
import { printable } from '../base/log.js';

/** The part of an agent that probes ask. */
export interface Probed {
  readonly conditions: readonly Condition[];
  readonly ailment: string | undefined;
}

const answer = (isWell: boolean, lines: readonly string[]): Answer => ({
  status: isWell ? 200 : 503,
  type: PLAIN_TEXT,
  text: lines.map((line) => `${printable(line)}\n`).join(''),
});

/** 503 if nothing but a restart of the process can help. */
export function healthOf({ ailment }: Pick<Probed, 'ailment'>): Answer {
  return answer(ailment === undefined, [ailment ?? 'ok']);
}

/** 503 until every vital part does its work. A line for each part: `[+]` it does, `[-]` it does not. */
export function readinessOf({ conditions }: Pick<Probed, 'conditions'>): Answer {
  const lines = conditions.map(({ part, isMet, isVital, text }) => {
    const mark = isMet ? '[+]' : '[-]';
    return `${mark} ${part}${isMet || isVital ? '' : ' (not needed)'}: ${text}`;
  });
  return answer(
    conditions.every(({ isMet, isVital }) => isMet || !isVital),
    lines,
  );
}
