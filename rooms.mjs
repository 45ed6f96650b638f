// The rooms of the source: the one list that all tools read. A room is a folder with the files that
// are directly in it ('.': the root). It imports only from rooms before it. Its code has at most
// `lines` lines, without comments and blank lines; what raises them says why in `because`.
// `machines`: the virtual machines that a change of the room concerns, besides the first, which
// every change does.

/** @typedef {{ name: string, lines: number, purpose: string, because?: string, machines?: string[] }} Room */

/** @type {(name: string, lines: number, purpose: string, more?: Partial<Room>) => Room} */
const room = (name, lines, purpose, more = {}) => ({ name, lines, purpose, ...more });
const on = (...machines) => ({ machines });

/** By source folder, in the order in which the rooms may import each other. */
export const HOUSES = {
  lib: [
    room('base/collections', 91, 'maps and lists that the language lacks', {
      because:
        'the caches by object, which eight rooms had each for itself, are one here; so is the registry',
    }),
    room('base/text', 68, 'how values are written in messages', {
      because:
        'times are written here, since toISOString() looks for the time zone of the machine; the text of the last second is kept',
    }),
    room('base/codes', 170, 'the codes of errors and rejections, and their details', {
      because: 'it has a type for the details of each code, which were any facts',
    }),
    room('base', 1310, 'errors, checks of options, and the surface of the addon', {
      because:
        'errors are a union by code in types and one class at runtime, which takes a type of both; the surface has checksums, plans for members, a survey of owners and their names, and what modules are loaded from; a step on a state begins in one call',
    }),
    room('base/notices', 77, 'how listeners are called, and when; signals of several', {
      because: 'AbortSignal.any() of Node 20 does not keep its sources',
    }),
    room('machine', 1388, 'CPU sets, hints, and the topology of a machine', {
      ...on('64-cpus', 'cpu-holes', 'isolated'),
      because: 'the nearest nodes with CPUs are found here, which were in decision/memory, and left alone',
    }),
    room('account', 1079, 'what pods hold: the account that decisions are made on', {
      ...on('quiet'),
      because: 'what is cached of a list of pods has one entry, which costs collections less',
    }),
    room('input/values', 195, 'quantities, durations and flags, checked', {
      because: 'a wrong quantity or size of pages is named with the right one',
    }),
    room('input/pods', 800, 'pods and workloads, checked', {
      because: 'misspelt resources and containers of manifests are found, as the API server does',
    }),
    room('input', 1245, 'options, checked', {
      because: 'spread and even memory, and tiers of memory are options',
    }),
    room('input/requests', 490, 'requests, checked'),
    room('decision/hints', 365, 'hint providers, and the merge of their hints', {
      ...on('8-nodes'),
      because: 'what was offered to a merge is listed here, which decision did',
    }),
    room('decision/devices', 397, 'the Device Manager', {
      ...on('4-nodes-pci'),
      because: 'joint placement takes the devices beside its CPUs first',
    }),
    room('decision/draft', 148, 'what a decision works on, and how pods share it'),
    room('decision/memory', 600, 'the Memory Manager', {
      ...on('memory-only-node', 'cpu-only-node', 'memory-tiers'),
      because: 'tiers of memory are chosen here',
    }),
    room('decision/cpus', 546, 'the CPU Manager', {
      ...on('64-cpus'),
      because:
        'kinds of cores, and mixtures of them, are chosen here; a placement has the flags of its fits once',
    }),
    room('decision/joint', 231, 'placement of all resources at once', {
      because: 'devices and spread count, and how much of a node is allocated',
    }),
    room('decision/flags', 369, 'what differs from the decision that was asked for'),
    room('decision', 1746, 'the Topology Manager: hints, merge, policy, fit, explanation', {
      ...on('8-nodes'),
      because:
        'pools and kinds of cores are tried in turn; the trials of whole pods, and the question to the core, came from decision/joint, which has more lines less',
    }),
    room('decision/changes', 1575, 'which grants move, grow and shrink, and the steps of that'),
    room('cgroups/files', 566, 'files and mounts of cgroups', on('newer-kernel')),
    room('cgroups/groups', 719, 'cpuset cgroups of both versions', on('newer-kernel')),
    room('cgroups', 263, 'the hierarchy for enforcement, and limits', on('newer-kernel')),
    room('processes', 228, 'identities of processes', on('containers')),
    room('state/format', 1400, 'the format of the state', {
      because:
        'lines of others come merged from the core, and their plain pods are taken without a look at each shape; what is wrong with lines is still found one by one',
    }),
    room('state/files', 990, 'files of the state folder, and watching them', {
      because:
        'a note on the names of owners’ files saves a look at /proc/locks; a look in the middle of an append reads nothing twice, and one after a step has begun looks at nothing',
    }),
    room('state/folder', 442, 'the state folder and its rights', {
      because: 'folders that are only read are opened here, which state did',
    }),
    room('state/owners', 1061, 'owners of grants, and whether they live', on('containers')),
    room('state', 1619, 'transactions on the state that processes share', {
      because:
        'which state folder of root uses a cgroup root is decided here, also by the processes there; states of the past are read back',
    }),
    room('enforcement/members', 1212, 'processes in the shared pool', {
      ...on('newer-kernel'),
      because: 'masks that numalign gave are told from chosen ones by what was in force at a start',
    }),
    room(
      'enforcement/layout',
      622,
      'cgroups of grants and of the shared pool: which there are to be, and the steps to them',
      { ...on('newer-kernel'), because: 'it has the cgroups that there are, which were a room of 280 lines' },
    ),
    room('enforcement', 1274, 'keeps others off granted CPUs', on('newer-kernel')),
    room('threads', 1115, 'threads and memory of this process', on('isolated', 'sixteen')),
    room('pools', 308, 'Workers on the CPUs of a grant', on('sixteen')),
    room('children', 247, 'programs that a grant starts'),
    room('quiet/kernel', 309, 'settings of the kernel, a file each', {
      ...on('quiet', 'quiet-newest'),
      because: 'housekeeping CPUs of a grant are left to kernel work',
    }),
    room('quiet/resctrl', 169, 'groups of the resctrl file system', on('quiet')),
    room('quiet/parts', 703, 'the parts of a quiet CPU', on('quiet', 'quiet-newest')),
    room('quiet', 624, 'keeps kernel work off granted CPUs', on('quiet')),
    room('admission', 1455, 'from a request to a committed grant, or to a plan', {
      ...on('8-nodes'),
      because: 'plans are in this room',
    }),
    room('admission/grants', 1255, 'grants on record: release, resize, transfer, sharing', on('8-nodes')),
    room('changes', 1330, 'grants that move, grow and shrink', on('8-nodes')),
    room('adoption', 411, 'grants that were made elsewhere'),
    room('kubelet', 1367, 'checkpoints of the kubelet, read and written', {
      because: 'files of 1.37 have their content twice, and are written too',
    }),
    room('kubelet/record', 169, 'what the kubelet holds beside numalign'),
    room('audit', 640, 'what ran on granted CPUs', {
      ...on('4-nodes-pci'),
      because:
        'a beginning is kept as it was read: most grants are never audited, and their pins had to make an account',
    }),
    room('reconcile', 653, 'finds and repairs drift, and opens CPUs at the exit', {
      ...on('newer-kernel', 'quiet'),
      because: 'what a process does for others at its exit is in this room',
    }),
    room('status', 349, 'the state as others see it'),
    room('grants', 1116, 'the parts of a Grant'),
    room('managers', 1431, 'a manager opens; the parts of a Manager', {
      because:
        'opening and the watch of the state are in this room, and classes that are there before their code',
    }),
    room('opening', 69, 'openManager and pin are doors: they load the rest'),
    room('.', 349, 'the entry numalign, and compiled code', {
      because:
        'an installation keeps compiled code with its source and a checksum of the addon, which spares programs the streams of Node; what few programs come to is loaded later; an entry that is imported has little code, since V8 compiles it at each start',
    }),
    room('cluster', 615, 'workers of a cluster, each on its CPUs'),
    room('doctor', 940, 'what keeps a machine from working well', {
      ...on('isolated'),
      because: 'it shows kinds of cores, and which of them are reserved',
    }),
    room('entries', 205, 'the other entries of the package'),
  ],
  'native/core': [
    room('.', 6540, 'hints, merge and fit, and lines of the state, without system calls', {
      ...on('8-nodes', 'memory-only-node'),
      because:
        'lines of the state are merged here: their checksum, their JSON, and the rows of their pods; records of members’ threads are read and written here; kinds of cores are ranked here; a joint choice takes the fewest L3 groups; a distribution keeps to the nodes and the socket of a hint; what JavaScript asks is read here, out of native/addon, so that tests and a fuzzer reach it',
    }),
  ],
  'native/platform': [
    room('.', 40, 'what all system calls share'),
    room('files', 2005, 'locks, journals, steps on a state, notices and files of code', {
      ...on('containers'),
      because:
        'all owners’ files are looked at in one call, which a call for each took five times as long for; the file that a look at an owner has open is read, instead of opened again; a waiter hears that it is next; a turn stays while its thread is ready but has no CPU, for lack of which a third of all turns ended early; closing a watch waits elsewhere; the names of owners’ files and modules are looked at here, which took Node longer; a step on a state begins in one call, and an owner’s file grows in one, for which a call for each look took twice as long; what a journal was last is known here; a watch is of the file that its path leads to, also if that is replaced meanwhile; a module, its checksum and its code are read in one call',
    }),
    room('discovery', 1795, 'hwloc, PCI devices, memory, CPU events', {
      ...on('4-nodes-pci', 'cpu-holes', 'cpu-only-node', 'memory-tiers'),
      because:
        'it reads what Linux says of memory, of which hwloc leaves out nodes; hwloc 3 and its XML are read too; what hwloc found, and Linux confirms, is kept for later processes, which took fifteen files for each CPU',
    }),
    room(
      'memory',
      390,
      'memory policies and buffers',
      on('memory-only-node', 'newer-kernel', 'memory-tiers'),
    ),
    room('process', 226, 'execve(2), what hears of the end, random UUIDs, and whose /proc it is', {
      because:
        'the shell that hears of the end of a command is started here, which took Node some milliseconds; whether /proc is ours is asked at each commit',
    }),
    room('threads', 2060, 'affinity and roles of threads', {
      ...on('64-cpus', 'isolated', 'newer-kernel', 'sixteen'),
      because: 'what an operation asks about many threads is read once, and handed on',
    }),
  ],
  'native/addon': [
    room('.', 2800, 'the glue to Node', {
      because:
        'a plan for a member is kept here until it is moved, so that nothing is handed over twice; a source is a text outside V8’s heap; a step on a state begins in one call, with the lock of the step before',
    }),
  ],
  'packages/metrics/lib': [
    room('sinks', 178, 'prom-client and OpenTelemetry', {
      because: 'prom-client is loaded without its collectors of the process, which nothing here uses',
    }),
    room('grants', 300, 'metrics of each grant'),
    room('.', 570, 'metrics of managers and of the state'),
  ],
  'packages/claims/lib': [
    room('devices', 225, 'a machine as devices'),
    room('cel', 485, 'selectors in the Common Expression Language'),
    room('claims', 615, 'claims, what a scheduler would give them, and the requests that follow', {
      because:
        'what numalign-node and plans each made of parameters and allocations is made here; claims may be mixed or movable, or ask for all devices',
    }),
    room('.', 50, 'the exports of the package'),
  ],
  'packages/page/lib': [
    room('words', 280, 'machines, grants and pools in words'),
    room('picture', 630, 'the machine as SVG', { because: 'the page has it without title and legend' }),
    room('sections', 325, 'the sections of the page as HTML'),
    room('serving', 395, 'the server, which requests are answered, the streams of events, style and script', {
      because: 'what a server answers beside the page came from the agent of packages/cli',
    }),
    room('.', 360, 'looks at the state, the handler, and the entries'),
  ],
  'packages/cli/lib': [
    room('terminal', 580, 'output, signals and errors of commands', {
      because:
        'what other programs call a command or flag leads to it, from a table; a reaper has the command from beside its own file',
    }),
    room('arguments', 1150, 'arguments and files of commands', {
      because:
        'templates, files of devices and fractions of bytes are told apart from manifests; a document knows the line and column of each field',
    }),
    room('gate', 830, 'what a kubelet or a cluster would refuse', {
      because: 'a plan is as strict as the cluster, with the names of its fields and feature gates',
    }),
    room('pages', 815, 'what is printed of a machine, a plan, a state', {
      because:
        'P-cores are told by the numbers of CPUs where a description names no kinds; claims of a plan are shown',
    }),
    room('pages/status', 375, 'what is printed of grants'),
    room('claims', 215, 'what plans make of ResourceClaims'),
    room('top', 290, 'what happens on the CPUs of grants, live', {
      because: 'a terminal view of its own, with figures that can be sorted',
    }),
    room('completion', 290, 'completion of bash, zsh and fish'),
    room('systemd', 175, 'units and set-up files', { ...on('systemd'), because: 'the agent has a unit' }),
    room('agent', 265, 'the agent, and what frees CPUs without it'),
    room('running', 170, 'how a command runs on its CPUs, and what frees them after it', {
      because:
        'a shell waits for the end of a command that no process watches, and starts a file of its own if a member lives',
    }),
    room('commands', 1625, 'the commands', {
      because: 'doctor judges the agent, which has a flag for the token of its page',
    }),
    room('commands/service', 950, 'the commands for services', {
      ...on('systemd'),
      because: 'what numalign has made on a machine is found and removed here',
    }),
    room('.', 210, 'the program', {
      because:
        'the installation has a part, the version needs no more, the reaper starts a file, run goes without the other commands, and the library is found sooner than Node finds it, but by Plug’n’Play where that is used',
    }),
  ],
  'packages/kubernetes/lib': [
    room('base', 180, 'errors and logs', {
      ...on('containers'),
      because: 'lines of the log have fields, as text or JSON; parts of packages are loaded, or all of them',
    }),
    room('metrics', 108, 'the registry of metrics', on('containers')),
    room('api-server', 820, 'the API server', {
      ...on('containers'),
      because:
        'a kubeconfig is read, and certificates of clients are shown; manifests of pods are found; two publishers write what is due here',
    }),
    room('events', 215, 'Events of pods and of the node', on('containers')),
    room('protobuf', 70, 'messages of protocol buffers', on('containers')),
    room('grpc', 62, 'services over gRPC, and their sockets', {
      ...on('containers'),
      because: 'sockets for kubelets came from device-plugin; a DRA plugin has them too',
    }),
    room('ttrpc', 510, 'services over ttrpc', on('containers')),
    room('nri', 775, 'the Node Resource Interface', {
      ...on('containers'),
      because: 'the error of a conflict names the other plugin; what becomes of creations is told',
    }),
    room('neighbours', 180, 'other programs that place CPUs', on('containers')),
    room('cgroups', 175, 'cgroups of containers', {
      ...on('containers', 'systemd-containers'),
      because: 'it refuses to work where the processes of containers cannot be seen',
    }),
    room('placement', 1000, 'from a container to a request', {
      ...on('containers'),
      because:
        'a container that starts again has the grant of its pod and name; unknown annotations are found; rules of the operator match containers; annotations ask for quiet, and for CPUs near other containers or apart from them; whole pods follow both, for which their manifests are read here',
    }),
    room(
      'claims',
      92,
      'ResourceClaims on the record, and in the environment of containers',
      on('containers'),
    ),
    room('containers', 2010, 'containers and their grants', {
      ...on('containers', 'systemd-containers'),
      because:
        'claims give CPUs; pods keep grants over restarts of their containers; what others move is put back, and the runtime is told; grants that others release or resize are followed; each decision is a line of the log, a metric and an Event; rules bind shared containers to parts of the pool; places near others are tried in turn',
    }),
    room('observation', 100, 'what is counted and logged of calls of the runtime', on('containers')),
    room('cri', 960, 'the Container Runtime Interface', {
      ...on('containers'),
      because: 'the runtime gets cpusets outside of answers',
    }),
    room('slices', 260, "the cpusets of the kubelet's slices", on('containers')),
    room('refusals', 300, 'what becomes of pods without a place', on('containers')),
    room('kubelet', 565, 'sockets and files of the kubelet', {
      ...on('containers'),
      because: 'gRPC is loaded when it is first asked',
    }),
    room('device-plugin', 810, 'the device plugin', on('containers')),
    room('dra', 5, 'devices of Dynamic Resource Allocation', on('containers')),
    room(
      'dra/allocation',
      200,
      'what a scheduler has allocated to a claim, and what the claim says',
      on('containers'),
    ),
    room('dra/protocol', 245, 'a DRA plugin as the kubelet sees it', on('containers')),
    room('dra/preparation', 480, 'claims that are prepared', on('containers')),
    room('dra/driver', 390, 'the DRA driver of a node', {
      ...on('containers'),
      because:
        'the status of a claim says whether it is prepared, beside what other drivers write there, and later if the API server is away',
    }),
    room('dra/publish', 550, 'ResourceSlices', {
      ...on('containers'),
      because: 'a node’s enforcement level is a taint of its devices',
    }),
    room('publish', 590, 'NodeResourceTopology objects', {
      ...on('containers'),
      because: 'the fingerprint of the pods needs a watch of them, and a hash that Node does not have',
    }),
    room('check', 670, 'what a node can do', {
      ...on('containers'),
      because: 'other programs that place CPUs are found; devices for claims need rights',
    }),
    room('.', 600, 'the exports of the package', {
      ...on('containers'),
      because:
        'the parts share metrics, Events and what is in effect, and say whether they work; refusals have a part; the plugin has the CRI socket of its runtime',
    }),
    room('configuration', 1110, 'the configuration of numalign-node', {
      ...on('containers'),
      because: 'it explains whole pods as one pod, and why others are placed one by one',
    }),
    room('cli', 750, 'the command numalign-node', {
      ...on('containers'),
      because:
        'it serves the page, metrics and health on request; flags follow from the table of fields; it shows the configuration, and explains what it makes of a pod; what few commands need has files of its own, which are loaded late',
    }),
  ],
};

/** Test files, a folder a line: `managers: resize manager`. */
const tests = (text) =>
  text
    .trim()
    .split(/\n */)
    .flatMap((line) => {
      const [folder, names] = line.split(': ');
      const path = folder.startsWith('packages/') ? folder : `test/${folder}`;
      return names.split(' ').map((name) => `${path}/${name}.test.ts`);
    });

const DECISIONS = tests(`
  input: pod-request
  admission: topology-manager proposals pod-level rejections
  decision: memory-manager device-manager joint pod-level lookahead merge-hints flags core-kinds
  decision: memory-tiers mixed parts even-memory strict-hugepages uneven-cores cpu-nodes grant-cpus
  decision: allocation-strategy kubelet-version
  managers: devices
  conformance: divergences
  kubelet: kubelet-exchange
  admission: admit
  decision: isolated-cpus
  decision/changes: repacking
  machine: hint-families
  admission: changed-machine
  managers: kubelet-conflict
  decision: partition
  managers: resize manager messages
  threads: memory
  admission: hotplug planner
  lifecycle: dead-owners grant-edges grant-life processes
  conformance: conformance`);

const STATE_FORMAT = tests(`
  state: shapes members state-change owner-file journal-lines owner-files
  kubelet: go-json kubelet-data
  state: difference newer-format recovery-laws unfinished-lines checkpoint
  kubelet: record-kubelet kubelet-format
  state: journal`);

const STATE_FILES = tests(`
  state: state-files journal-follower found-owners folder-events owner-locks owner-files
  state: recovery-laws unfinished-lines newer-format full-disk calls-in-a-row long-states
  status: status
  state: delayed-notices folder-watch journal strays file-watch no-inotify`);

const STATE_OWNERS = tests(`
  state: rebuilt living-owners owner-claims own-file lock-holder cgroup-turns own-owner owner-files
  state: recovery-laws unfinished-lines full-disk calls-in-a-row
  kubelet: record-kubelet
  lifecycle: dead-owners
  state: strays owner-watch owners owner-ends restored-folders recovery put-back`);

const STATE = tests(`
  state: until state-lock state-writer difference memory-store read-only-store ledger wait-queue
  state: owner-guard`);

const STATE_OF_PROCESSES = tests(`
  state: lock open-folders owner-watch machine-group folder-errors shared-folders open-file-limit
  processes: program-name
  kubelet: kubelet-exchange
  lifecycle: dead-owners processes`);

/**
 * Which test files judge the mutants of a room and of those in it: those that run its code in their
 * own process. Quick ones first. The first room that a path begins with counts.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
export const JUDGES = {
  'lib/decision': DECISIONS,
  'lib/admission': DECISIONS,
  'lib/state/format': STATE_FORMAT,
  'lib/state/files': STATE_FILES,
  'lib/state/folder': tests(
    'state: closed-folders chosen-folder folder root-choice machine-group open-folders folder-errors',
  ),
  'lib/state/owners': STATE_OWNERS,
  'lib/state': [
    ...new Set([...STATE, ...STATE_FORMAT, ...STATE_FILES, ...STATE_OF_PROCESSES, ...STATE_OWNERS]),
  ],
  'lib/enforcement': tests(`
    enforcement: holders grant-group levels overlap quota attach
    enforcement/layout: transition differences
    enforcement/members: shared-members member-masks
    enforcement: hidden users
    cgroups/groups: cpuset-v1
    cgroups/files: made-groups
    reconcile: drift fights
    decision: isolated-cpus
    admission: changed-machine
    lifecycle: dead-owners grant-edges grant-life processes workers
    packages/cli/test: enforcement run`),
  'lib/cgroups': tests(`
    cgroups: limits
    cgroups/files: made-groups mounts
    cgroups/groups: cpuset-v1
    enforcement: quota levels attach
    doctor: foreign-cpusets
    admission: diagnostics`),
  // Without those that change the settings of this kernel: a mutant could leave them so.
  'lib/quiet': tests(`
    quiet/kernel: cpu-mask cpufreq demands recent kernel-files
    quiet/cache: schemata
    quiet: record plan writing quieter-of turns kernel-work outcome refusals
    quiet/parts: hidden masks idle frequency packets workqueues interrupts irqbalance
    quiet/parts: coming-and-going
    quiet/cache: cache-part cache-laws cache-crashes
    quiet: crashes`),
  'lib/cluster': tests('cluster: worker-life fork restart respawn kills'),
  'packages/kubernetes/lib/nri': tests(
    'packages/kubernetes/test/nri: protocol runtime-state session connect plugin-service plugin',
  ),
};

/** Which files of test/vm/guest judge them in virtual machines, on request. */
export const MACHINE_JUDGES = {
  'lib/enforcement': ['enforcement', 'drift', 'masks'],
  'lib/cgroups': ['cgroups-v2', 'enforcement'],
};
