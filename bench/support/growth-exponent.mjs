// How something grows: the exponent b of t = a * n^b that fits best.

/**
 * The slope of the least-squares line through the logarithms of points `[n, t]`, all above 0, with
 * at least two different `n`.
 */
export function growthExponent(points) {
  const logs = points.map(([n, t]) => [Math.log(n), Math.log(t)]);
  const mean = (at) => logs.reduce((sum, log) => sum + log[at], 0) / logs.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const sum = (term) => logs.reduce((total, log) => total + term(log), 0);
  return sum(([x, y]) => (x - meanX) * (y - meanY)) / sum(([x]) => (x - meanX) ** 2);
}
