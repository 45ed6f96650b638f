// What several builds of the package take for the same work, side by side.
import { memberText, titleOf } from './tables.mjs';
import { TARGETS } from './targets.mjs';
import { number } from './units.mjs';

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** The least value of a member in the rows with this name, in any turn. */
function leastOf(turns, name, member) {
  const values = turns
    .flat()
    .filter((row) => row.name === name)
    .map((row) => row[member]);
  const numbers = values.filter(isNumber);
  return numbers.length > 0 ? Math.min(...numbers) : undefined;
}

/**
 * Rows for a table: one per figure, for the median and what has a target, with a column for each
 * build: the least of its turns. The last column is the last build's value as a part of the first
 * one's.
 * @param rows as onPackages yields them
 */
export function comparison(scenario, rows, labels, targets = TARGETS) {
  const names = [...new Set(rows.flat(2).map(({ name }) => name))];
  return names.flatMap((name) => {
    const rowTargets = targets[scenario]?.[name] ?? {};
    return [...new Set(['medianNs', ...Object.keys(rowTargets)])].flatMap((member) => {
      const values = rows.map((turns) => leastOf(turns, name, member));
      if (values.every((value) => value === undefined)) return [];
      const [first, last] = [values[0], values.at(-1)];
      return {
        name,
        figure: member === 'medianNs' ? 'median' : titleOf(member),
        ...Object.fromEntries(labels.map((label, i) => [label, memberText(member, values[i])])),
        change: first > 0 && last > 0 ? `${number(first / last)} times less` : '-',
        ...(rowTargets[member] !== undefined && { goal: `<= ${memberText(member, rowTargets[member])}` }),
      };
    });
  });
}
