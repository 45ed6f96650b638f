// Subset: what of the Common Expression Language is evaluated here: comparisons, &&, ||, !, in, lists,
// and quantities, on the members of a device.
import type { Expression } from './expression.js';

const MEMBERS = ['driver', 'attributes', 'capacity', 'allowMultipleAllocations'];
const METHODS = ['compareTo', 'isGreaterThan', 'isLessThan'];
const OPERATORS = ['||', '&&', '==', '!=', '<', '<=', '>', '>=', 'in'];

/** The first part of an expression that is not evaluated; undefined: there is none. */
export function beyondSubset(expression: Expression): string | undefined {
  const all = (...parts: readonly Expression[]) =>
    parts.map(beyondSubset).find((found) => found !== undefined);
  switch (expression.kind) {
    case 'literal':
      return undefined;
    case 'name':
      return expression.name === 'device' ? undefined : `the name ${expression.name}`;
    case 'list':
      return all(...expression.items);
    case 'member': {
      const { of, name } = expression;
      const isUnknown = of.kind === 'name' && of.name === 'device' && !MEMBERS.includes(name);
      return isUnknown ? `device.${name}` : all(of);
    }
    case 'index':
      return all(expression.of, expression.index);
    case 'call': {
      const { of, name, args } = expression;
      const isKnown = args.length === 1 && (of ? METHODS.includes(name) : name === 'quantity');
      return isKnown ? all(...(of ? [of] : []), ...args) : `${of ? 'the method' : 'the function'} ${name}()`;
    }
    case 'unary':
      return all(expression.of);
    case 'binary': {
      const { operator, left, right } = expression;
      return OPERATORS.includes(operator) ? all(left, right) : `the operator ${operator}`;
    }
    case 'other':
      return expression.what;
  }
}
