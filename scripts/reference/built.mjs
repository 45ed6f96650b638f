// What the built package says of itself: its commands, and its metrics.
const dist = (path) => import(new URL(`../../dist/${path}`, import.meta.url));

export async function commandLine() {
  const [{ createProgram }, { fillProse }] = await Promise.all([
    dist('cli/program.js'),
    dist('cli/terminal/text.js'),
  ]);
  return { createProgram, fillProse };
}

/** Every metric, as prom-client has it, of a machine that is simulated. */
export async function allMetrics() {
  const [{ openManager }, { discover }, { collectMetrics }, { Registry }] = await Promise.all([
    dist('index.js'),
    dist('entries/topology.js'),
    dist('metrics/index.js'),
    import('prom-client'),
  ]);
  const manager = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
  const register = new Registry();
  const { stop } = collectMetrics(manager, { register, watch: true, audit: true, grants: { memory: true } });
  const metrics = register.getMetricsAsArray().map((metric) => ({
    name: metric.name,
    help: metric.help,
    labels: metric.labelNames,
    type: metric.constructor.name.toLowerCase(),
  }));
  stop();
  manager.close();
  return metrics.sort((a, b) => (a.name < b.name ? -1 : 1));
}
