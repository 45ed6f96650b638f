// PluginConflict: two plugins that set the same of a container. A runtime then refuses the change,
// and names both. Pure.

export interface PluginConflict {
  /** As runtimes know them: `10-balloons`. */
  readonly plugins: readonly [string, string];
  /** What both have set, in the runtime's words. */
  readonly subject: string;
}

/** The conflict in a runtime's error; undefined if it has another reason. */
export function conflictIn(message: string): PluginConflict | undefined {
  const found = /plugins "([^"]+)" and "([^"]+)" both tried to set ([^:;\n]+)/.exec(message);
  if (!found) return undefined;
  const [, first = '', second = '', subject = ''] = found;
  return { plugins: [first, second], subject: subject.trim() };
}

export const CONFLICT_REMEDY = 'run only one plugin that places CPUs; `numalign-node --check` finds others';

/** The conflict in words; `own`: the name and index of this plugin, if it may be one of the two. */
export function conflictText({ plugins, subject }: PluginConflict, own?: string): string {
  const others = plugins.filter((plugin) => plugin !== own);
  return `the plugin ${others.join(' and ')} also sets ${subject}: ${CONFLICT_REMEDY}`;
}
