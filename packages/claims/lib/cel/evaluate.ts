// Evaluation of selectors on a device, as schedulers do it. Pure.
import { parseQuantity } from 'numalign/tools';
import type { BinaryOperator, Expression } from './expression.js';

/** An amount, in billionths. */
export class Quantity {
  constructor(readonly amount: bigint) {}
}

/** What a selector sees of a device. Names in maps are without their domains. */
export interface SelectedDevice {
  readonly driver: string;
  readonly allowMultipleAllocations: boolean;
  readonly attributes: Domains<Value>;
  readonly capacity: Domains<Quantity>;
}

type Domains<T> = ReadonlyMap<string, ReadonlyMap<string, T>>;

export type Value =
  | bigint
  | number
  | string
  | boolean
  | null
  | Quantity
  | readonly Value[]
  | ReadonlyMap<string, unknown>;

/** Why a selector has no value for a device: schedulers then place no pod that asks with it. */
export class EvaluationError extends Error {
  override readonly name = 'EvaluationError';
}

const EMPTY: ReadonlyMap<string, unknown> = new Map();

/**
 * Whether a selector of the subset matches a device.
 * @throws EvaluationError
 */
export function matches(selector: Expression, device: SelectedDevice): boolean {
  const value = evaluate(selector, device);
  if (typeof value === 'boolean') return value;
  throw new EvaluationError(`the selector is ${kindOf(value)}, not true or false`);
}

function evaluate(expression: Expression, device: SelectedDevice): Value {
  const evaluated = (each: Expression) => evaluate(each, device);
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'list':
      return expression.items.map(evaluated);
    case 'name':
      return new Map(Object.entries(device));
    case 'member':
      return entryOf(expression.of, evaluated(expression.of), expression.name);
    case 'index':
      return elementOf(expression.of, evaluated(expression.of), evaluated(expression.index));
    case 'call': {
      const [arg] = expression.args.map(evaluated);
      return expression.of ? compared(expression.name, evaluated(expression.of), arg!) : quantity(arg!);
    }
    case 'unary':
      return expression.operator === '!'
        ? !truth(evaluated(expression.of))
        : negated(evaluated(expression.of));
    case 'binary': {
      const { operator, left, right } = expression;
      if (operator === '&&') return junction(left, right, device, false);
      if (operator === '||') return junction(left, right, device, true);
      return related(operator, evaluated(left), evaluated(right));
    }
    case 'other':
      throw new EvaluationError(`${expression.what} is not evaluated`);
  }
}

// A domain that a device has nothing of is empty, a name that it does not have is an error.
const isDomains = (of: Expression): boolean =>
  of.kind === 'member' && of.of.kind === 'name' && (of.name === 'attributes' || of.name === 'capacity');

function entryOf(of: Expression, value: Value, key: string): Value {
  if (!(value instanceof Map)) throw new EvaluationError(`${kindOf(value)} has no member ${key}`);
  const entry = value.get(key) as Value | undefined;
  if (entry !== undefined) return entry;
  if (isDomains(of)) return EMPTY;
  throw new EvaluationError(`no such key: ${key}`);
}

function elementOf(of: Expression, value: Value, index: Value): Value {
  if (Array.isArray(value) && typeof index === 'bigint') {
    const element = value[Number(index)];
    if (element === undefined) throw new EvaluationError(`there is no element ${index}`);
    return element;
  }
  if (typeof index === 'string') return entryOf(of, value, index);
  throw new EvaluationError(`${kindOf(index)} is no key of ${kindOf(value)}`);
}

/** One side that decides is enough, even if the other has no value. */
function junction(left: Expression, right: Expression, device: SelectedDevice, decisive: boolean): boolean {
  let error: unknown;
  for (const side of [left, right]) {
    try {
      if (truth(evaluate(side, device)) === decisive) return decisive;
    } catch (cause) {
      error ??= cause;
    }
  }
  if (error !== undefined) throw error;
  return !decisive;
}

function truth(value: Value): boolean {
  if (typeof value === 'boolean') return value;
  throw new EvaluationError(`${kindOf(value)} is neither true nor false`);
}

function negated(value: Value): Value {
  if (typeof value === 'bigint' || typeof value === 'number') return -value;
  throw new EvaluationError(`there is no minus of ${kindOf(value)}`);
}

function quantity(value: Value): Quantity {
  if (typeof value !== 'string') throw new EvaluationError(`${kindOf(value)} is no text of a quantity`);
  try {
    return new Quantity(parseQuantity(value, 'It'));
  } catch {
    throw new EvaluationError(`${JSON.stringify(value)} is no quantity`);
  }
}

function compared(method: string, of: Value, to: Value): Value {
  if (!(of instanceof Quantity) || !(to instanceof Quantity))
    throw new EvaluationError(`${method}() compares quantities, not ${kindOf(of)} with ${kindOf(to)}`);
  const difference = of.amount === to.amount ? 0n : of.amount < to.amount ? -1n : 1n;
  if (method === 'compareTo') return difference;
  return method === 'isGreaterThan' ? difference === 1n : difference === -1n;
}

function related(operator: BinaryOperator, left: Value, right: Value): boolean {
  if (operator === '==') return isEqual(left, right);
  if (operator === '!=') return !isEqual(left, right);
  if (operator === 'in') return isIn(left, right);
  const isOrdered =
    (isNumber(left) && isNumber(right)) ||
    (typeof left === typeof right && (typeof left === 'string' || typeof left === 'boolean'));
  if (!isOrdered)
    throw new EvaluationError(
      `${operator} does not compare ${kindOf(left)} with ${kindOf(right)}` +
        (left instanceof Quantity ? ': quantities have compareTo(), isLessThan() and isGreaterThan()' : ''),
    );
  const [a, b] = [left as number, right as number];
  switch (operator) {
    case '<':
      return a < b;
    case '<=':
      return a <= b;
    case '>':
      return a > b;
    default:
      return a >= b;
  }
}

const isNumber = (value: Value) => typeof value === 'bigint' || typeof value === 'number';

function isEqual(left: Value, right: Value): boolean {
  if (left instanceof Quantity) return right instanceof Quantity && left.amount === right.amount;
  if (Array.isArray(left))
    return (
      Array.isArray(right) && left.length === right.length && left.every((each, i) => isEqual(each, right[i]))
    );
  // A whole number equals the same number with a fraction of 0.
  // biome-ignore lint/suspicious/noDoubleEquals: a bigint and a number
  return isNumber(left) && isNumber(right) ? left == right : left === right;
}

function isIn(value: Value, all: Value): boolean {
  if (Array.isArray(all)) return all.some((each) => isEqual(value, each));
  if (all instanceof Map) return typeof value === 'string' && all.has(value);
  throw new EvaluationError(`nothing is in ${kindOf(all)}`);
}

function kindOf(value: Value): string {
  if (value instanceof Quantity) return 'a quantity';
  if (Array.isArray(value)) return 'a list';
  if (value === null) return 'null';
  const kinds: Record<string, string> = {
    bigint: 'a whole number',
    number: 'a number',
    string: 'a text',
    boolean: 'a truth',
  };
  return kinds[typeof value] ?? 'a map';
}
