// The option of commands that consents to a move.
import { InvalidArgumentError, Option } from 'commander';
import type { MovableOptions } from 'numalign/diagnostics';
import { checkAcquireOptions } from 'numalign/tools';
import { asArgument } from './arguments.js';

export interface MovableFlags {
  /** `true`: without terms. */
  movable?: true | MovableOptions;
}

const VALID = 'maxPerHour=NUMBER, notice=DURATION, exclude=NODES. `--` goes before a command';

// A comma before a term: lists of nodes have commas too.
const BETWEEN = /,(?=\w+=)/;

function termOf(text: string): [name: string, value: string | number] {
  const [, name, value] = /^(maxPerHour|notice|exclude)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError(`"${text}" is none of ${VALID}.`);
  return [name, name === 'exclude' || !/^\d+$/.test(value) ? value : Number(value)];
}

/** Parses terms such as `maxPerHour=4,notice=2s,exclude=0,2`. */
export function movableTerms(value: string): MovableOptions {
  const terms = Object.fromEntries(value.split(BETWEEN).map(termOf));
  asArgument(() => checkAcquireOptions({ cpu: 1, movable: terms }));
  return terms;
}

/** An option of one request. */
export const movableOption = () =>
  new Option(
    '--movable [terms]',
    'may move to make room for others, on terms such as maxPerHour=4,notice=2s,exclude=1',
  ).argParser(movableTerms);
