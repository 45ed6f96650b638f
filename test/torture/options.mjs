// Options of the scripts here: --name VALUE, no unknown ones, whole numbers. --package may come
// several times.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The options by name. `defaults`: the numbers and their defaults; a flag is `false`. Ends the
 * process with usage if they make no sense.
 */
export function parseOptions(script, defaults) {
  const options = { package: { type: 'string', multiple: true } };
  for (const [name, value] of Object.entries(defaults))
    options[name] = { type: value === false ? 'boolean' : 'string' };
  try {
    const { values } = parseArgs({ options });
    const given = Object.entries(defaults).map(([name, value]) => {
      if (value === false) return [name, values[name] ?? false];
      const number = Number(values[name] ?? value);
      if (!Number.isSafeInteger(number) || number < 0) throw new Error(`--${name} must be a whole number`);
      return [name, number];
    });
    return { ...Object.fromEntries(given), packages: values.package ?? [ROOT] };
  } catch (error) {
    const flags = Object.entries(defaults).map(([name, value]) =>
      value === false ? `[--${name}]` : `[--${name} N]`,
    );
    console.error(`${error.message}\nusage: node ${script} ${flags.join(' ')} [--package DIR ...]`);
    process.exit(2);
  }
}

/** A seed that differs from run to run, for runs without --seed. */
export const freshSeed = () => Number(process.hrtime.bigint() % 1_000_000_007n);
