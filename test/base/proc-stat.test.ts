// needs: nothing
import { expect, it } from 'vitest';
import { parseProcStat } from '../../lib/base/text/proc-stat.js';

const after = 'S 7 40 41 34816 42 4194304 1 2 3 4 5 6 7 8 20 0 11 0 987654 0 0';

it.each(['node', 'a b', '(sd-pam)', ') R 1 2 3 4', ''])('the fields follow the command %j', (command) => {
  expect(parseProcStat(`4711 (${command}) ${after}\n`)).toEqual({
    ...{ state: 'S', ppid: '7', pgrp: '40', session: '41', tty: '34816', tpgid: '42', starttime: '987654' },
  });
});

it('the fields of a missing file are empty', () => {
  expect(Object.values(parseProcStat(''))).toEqual(['', '', '', '', '', '', '']);
});
