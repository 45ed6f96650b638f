// An estimate of a mean from independent samples, with half of its 95 % interval.

// Student's t at 97.5 %, by the degrees of freedom.
const T = [
  ...[12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228],
  ...[2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093],
];
const NORMAL = 1.96;

/**
 * `plusMinus` is undefined for a single sample. Samples that are not numbers, such as a part of
 * nothing, are left out.
 */
export function estimate(samples) {
  const numbers = samples.filter(Number.isFinite);
  const count = numbers.length;
  if (count === 0) return undefined;
  const mean = numbers.reduce((sum, number) => sum + number, 0) / count;
  if (count === 1) return { mean };
  const squares = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0);
  const error = Math.sqrt(squares / (count - 1) / count);
  return { mean, plusMinus: error * (T[count - 2] ?? NORMAL) };
}
