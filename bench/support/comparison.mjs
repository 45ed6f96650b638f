// What several builds of the package take for the same work, side by side.
import { goalText, memberText, titleOf } from './tables.mjs';
import { TARGETS } from './targets.mjs';
import { number } from './units.mjs';

const TIMES = ['medianNs', 'cpuNs'];

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** The least value of a member in a row, in any turn; the most if more is better. */
function bestOf(turns, name, member, goal) {
  const values = turns
    .flat()
    .filter((row) => row.name === name)
    .map((row) => row[member]);
  const numbers = values.filter(isNumber);
  if (numbers.length === 0) return undefined;
  return goal?.least === undefined ? Math.min(...numbers) : Math.max(...numbers);
}

/**
 * Rows for a table: one per figure, for times and what has a target, with a column for each build:
 * the best of its turns. The last column is the last build's value as a part of the first one's.
 * @param rows as onPackages yields them
 */
export function comparison(scenario, rows, labels, targets = TARGETS) {
  const names = [...new Set(rows.flat(2).map(({ name }) => name))];
  return names.flatMap((name) => {
    const rowTargets = targets[scenario]?.[name] ?? {};
    return [...new Set([...TIMES, ...Object.keys(rowTargets)])].flatMap((member) => {
      const values = rows.map((turns) => bestOf(turns, name, member, rowTargets[member]));
      if (values.every((value) => value === undefined)) return [];
      const goal = rowTargets[member];
      const [first, last] = [values[0], values.at(-1)];
      return {
        name,
        figure: member === 'medianNs' ? 'median' : titleOf(member),
        ...Object.fromEntries(labels.map((label, i) => [label, memberText(member, values[i])])),
        change: first > 0 && last > 0 ? `${number(first / last)} times less` : '-',
        ...(goal !== undefined && { goal: goalText(member, goal) }),
      };
    });
  });
}
