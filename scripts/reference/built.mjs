// What the built package says of itself: its commands, and its metrics.
const PREFIX = 'numalign_'.length;

const built = (path) => import(new URL(`../../${path}`, import.meta.url));

export async function commandLine() {
  return built('packages/cli/dist/program.cjs');
}

/** The fields of the configuration of numalign-node. */
export const nodeFields = async () =>
  (await built('packages/kubernetes/dist/configuration/fields.js')).FIELDS;

/** What reads descriptions of machines. */
export async function machineReader() {
  const [{ CpuSet }, { discover }] = await Promise.all([
    built('dist/index.js'),
    built('dist/entries/topology.js'),
  ]);
  return { CpuSet, discover };
}

/** The rows of the tables of options by name, those of groups too, and what excludes what. */
export async function optionTables() {
  const [{ PLACEMENT_OPTIONS }, { excludedBy }, { MACHINE_OPTIONS }, { optionRows }] = await Promise.all([
    built('dist-test/lib/input/placement-options.js'),
    built('dist-test/lib/input/policy-options.js'),
    built('dist-test/lib/input/machine-options.js'),
    built('dist-test/lib/input/option-table.js'),
  ]);
  const inGroups = Object.fromEntries(optionRows(PLACEMENT_OPTIONS));
  return {
    rows: { ...PLACEMENT_OPTIONS, ...MACHINE_OPTIONS, ...inGroups },
    excludedBy,
    ofMachine: MACHINE_OPTIONS,
  };
}

/**
 * Every metric, as prom-client has it, of a machine that is simulated; with the name that it has in
 * OpenTelemetry, if it is there too.
 */
export async function allMetrics() {
  const [{ openManager }, { discover }, { collectMetrics }, otel, sink, { Registry }] = await Promise.all([
    built('dist/index.js'),
    built('dist/entries/topology.js'),
    built('packages/metrics/dist/index.js'),
    built('packages/metrics/dist/opentelemetry.js'),
    built('packages/metrics/dist/sinks/meter-sink.js'),
    import('prom-client'),
  ]);
  const manager = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
  const register = new Registry();
  const { stop } = collectMetrics(manager, { register, watch: true, audit: true, grants: { memory: true } });
  const instruments = instrumentsOf(otel, manager);
  const metrics = register.getMetricsAsArray().map((metric) => ({
    name: metric.name,
    help: metric.help,
    labels: metric.labelNames,
    type: metric.constructor.name.toLowerCase(),
    buckets: metric.upperBounds,
    instrument: instruments.find(({ name }) => name === sink.instrumentOf(metric.name.slice(PREFIX)).name),
  }));
  stop();
  manager.close();
  return metrics.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The instruments that a meter is asked for. */
function instrumentsOf({ registerMetrics }, manager) {
  const found = [];
  const create = (name, { unit }) => found.push({ name, unit });
  const ignore = () => {};
  const { stop } = registerMetrics(manager, {
    meter: {
      createObservableCounter: create,
      createObservableGauge: create,
      addBatchObservableCallback: ignore,
      removeBatchObservableCallback: ignore,
    },
    audit: true,
    grants: { memory: true },
  });
  stop();
  return found;
}
