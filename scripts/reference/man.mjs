// The man pages of the command line: one of the program and one of each command, from the same tables
// and helps as docs/reference/command-line.md.
import { OUTPUT } from './command-line.mjs';

/** By the words with which a paragraph of the help begins; a last colon is left out. */
const SECTIONS = {
  'JSON:': 'JSON',
  'Exit code:': 'EXIT STATUS',
  'Errors go': 'DIAGNOSTICS',
  'Examples:': 'EXAMPLES',
};

const SEE_ALSO = ['taskset(1)', 'numactl(8)', 'cpuset(7)', 'cgroups(7)', 'systemd.resource-control(5)'];

/**
 * The text of each page by its file's name.
 * @param {import('commander').Command} program
 * @param {{ version: string, date: string, stateDir: string }} facts `date`: as YYYY-MM-DD
 * @returns {Record<string, string>}
 */
export function manPages(program, facts) {
  const commands = withBelow(program);
  return Object.fromEntries(
    commands.map((command) => [`${pageOf(command)}.1`, pageText(command, commands, facts)]),
  );
}

const withBelow = (command) => [command, ...command.commands.flatMap(withBelow)];

const pathOf = (command) => (command.parent ? [...pathOf(command.parent), command.name()] : [command.name()]);

/** `numalign-run`, which man(1) also finds by `man numalign run`. */
const pageOf = (command) => pathOf(command).join('-');

function pageText(command, commands, { version, date, stateDir }) {
  const page = pageOf(command);
  const help = command.createHelp();
  const { leading, sections } = partsOf(afterHelp(command));
  const isProgram = command.parent === null;
  const synopsis = help.commandUsage(command).slice(pathOf(command).join(' ').length);
  const others = commands.filter((each) => each !== command && isNear(command, each));
  const seeAlso = [...others.map((each) => `${pageOf(each)}(1)`), ...(isProgram ? SEE_ALSO : [])];
  const parts = [
    ['NAME', [`${escaped(page)} \\- ${escaped(summaryOf(command))}`]],
    ['SYNOPSIS', [bold(pathOf(command).join(' ')) + values(escaped(synopsis))]],
    ['DESCRIPTION', paragraphs([command.description(), ...leading])],
    ['COMMANDS', command.commands.map((child) => item(bold(child.name()), summaryOf(child)))],
    [
      'OPTIONS',
      help
        .visibleOptions(command)
        .map((option) => item(flags(help.optionTerm(option)), help.optionDescription(option))),
    ],
    ...Object.entries(sections),
    ...(isProgram
      ? [
          ['OUTPUT', bullets(OUTPUT)],
          [
            'FILES',
            [item(italic(stateDir), "The machine's state, in which processes find each other's grants.")],
          ],
        ]
      : []),
    ['SEE ALSO', seeAlso.map(reference)],
  ];
  const head = `.TH ${page.toUpperCase()} 1 "${date}" "numalign ${version}" "numalign"`;
  const body = parts.flatMap(([title, lines]) => (lines.length === 0 ? [] : [`.SH ${title}`, ...lines]));
  return `${[COMMENT, head, '.ad l', ...body].join('\n')}\n`;
}

const COMMENT = '.\\" Generated from the help of the commands. Do not edit.';

/** The program and its commands, or a command and those below and above it. */
const isNear = (command, other) =>
  command.parent === null ? other.parent === command : other === command.parent || other.parent === command;

// The name line is one sentence without a capital at its beginning or a full stop at its end.
const summaryOf = (command) => {
  if (command.parent === null) return 'exclusive, topology-aligned CPUs, memory and devices for programs';
  const text = command.summary() || command.description();
  return `${text[0].toLowerCase()}${text.slice(1).replace(/\.$/, '')}`;
};

/** What the command adds after its help. */
function afterHelp(command) {
  let text = '';
  command.emit('afterHelp', {
    error: false,
    command,
    write: (part) => {
      text += part;
    },
  });
  return text;
}

/** The paragraphs at the beginning, and the sections by their titles. */
function partsOf(text) {
  const blocks = text.split(/\n\n+/).map((block) => block.replace(/^\n+|\s+$/g, ''));
  const leading = [];
  const sections = {};
  for (const block of blocks.flatMap(splitAtHeads)) {
    if (block === '') continue;
    const [head, title] = Object.entries(SECTIONS).find(([each]) => block.startsWith(each)) ?? [];
    if (head === undefined) leading.push(block);
    else sections[title] = contentOf(head.endsWith(':') ? block.slice(head.length) : block, title);
  }
  return { leading, sections };
}

// The help of the program has its exit codes and what follows them in one block.
const splitAtHeads = (block) => block.split(/\n(?=Errors go to)/);

function contentOf(text, title) {
  if (title === 'EXAMPLES') return literal(text.replace(/^\n/, '').replace(/^ {2}/gm, ''));
  return paragraphs([text.trim()]);
}

/** Paragraphs are filled; indented lines stay as they are. */
function paragraphs(texts) {
  const blocks = texts.flatMap((text) => text.split(/\n\n+/));
  return blocks.flatMap((block, i) => {
    const lines = /^\s{2}/.test(block) ? literal(block.replace(/^ {2}/gm, '')) : [prose(block)];
    return i === 0 ? lines : ['.PP', ...lines];
  });
}

const literal = (text) => ['.EX', ...text.split('\n').map(escaped), '.EE'];

/** The entries of a list in Markdown, without its marks. */
const bullets = (text) =>
  text.split(/^- /m).flatMap((entry) => {
    const plain = entry.trim().replace(/`|\[([^\]]*)\]\([^)]*\)/g, '$1');
    return plain === '' ? [] : ['.IP \\(bu 2', prose(plain)];
  });

/** In lines of at most 80 bytes, which tools that compare pages prefer. */
const prose = (text) => {
  const lines = [''];
  for (const word of text.split(/\s+/).map(escaped)) {
    const line = lines.at(-1);
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= 80) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
};

const item = (term, text) => `.TP\n${term}\n${prose(text)}`;
/** A page's name and section, and a comma after all but the last. */
const reference = (name, i, all) => {
  const [, page, section] = /^(.*)(\(\d\))$/.exec(name);
  // Without hyphenation.
  return `.BR \\%${escaped(page)} ${section}${i < all.length - 1 ? ',' : ''}`;
};

const bold = (text) => `\\fB${escaped(text)}\\fR`;
const italic = (text) => `\\fI${escaped(text)}\\fR`;

/** `-f, --file <file>` with its names in bold, and the values in italics. */
const flags = (term) => values(escaped(term).replace(/(^|, )(\\-[\w\\-]+)/g, '$1\\fB$2\\fR'));
const values = (text) => text.replace(/<[^>]+>/g, '\\fI$&\\fR');

const ESCAPES = { '\\': '\\e', '-': '\\-', '~': '\\(ti', '^': '\\(ha', '`': '\\(ga', "'": '\\(aq' };

// A point at the beginning of a line would be a request.
const escaped = (text) =>
  text
    .replace(/[\\~^`'-]/g, (character) => ESCAPES[character])
    .replace(
      /\P{ASCII}/gu,
      (character) => `\\[u${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`,
    )
    .replace(/^\./gm, '\\&.');
