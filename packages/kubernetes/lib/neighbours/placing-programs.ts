// PlacingPrograms: other programs that place the CPUs of containers, by the names of their
// executables. Pure.

const NRI_PLUGINS = 'https://github.com/containers/nri-plugins';

const PLACING: Readonly<Record<string, string>> = {
  'nri-resource-policy-balloons': NRI_PLUGINS,
  'nri-resource-policy-topology-aware': NRI_PLUGINS,
  'nri-resource-policy-template': NRI_PLUGINS,
  'cri-resmgr': 'https://github.com/intel/cri-resource-manager',
  dracpu: 'https://github.com/kubernetes-sigs/dra-driver-cpu',
  'simple-cpu-dra-driver': 'a DRA driver for CPUs',
  koordlet: 'https://koordinator.sh',
  'katalyst-agent': 'https://github.com/kubewharf/katalyst-core',
  'crane-agent': 'https://gocrane.io',
};

/** What a program that places CPUs is; undefined for any other program. */
export const placingProgram = (name: string): string | undefined =>
  Object.hasOwn(PLACING, name) ? PLACING[name] : undefined;

/** Whether a plugin's name, without its index, is of a program that places CPUs. */
export function isPlacingPlugin(name: string): boolean {
  const names = Object.keys(PLACING);
  return names.some((known) => name === known || known === `nri-resource-policy-${name}`);
}
