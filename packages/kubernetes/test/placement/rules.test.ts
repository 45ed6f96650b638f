import { describe, expect, it } from 'vitest';
import { refuseAnnotations } from '../../lib/placement/annotations.js';
import { containerRequest, ruleSubject } from '../../lib/placement/container-request.js';
import { matching, parseRules, unmet } from '../../lib/placement/rules.js';
import { containerOf, podOf, thrownBy } from '../support/nri-objects.js';

const ruleOf = (fields: object) => parseRules([fields], 'rules')[0]!;
const GUARANTEED = { cpus: 2, memory: 2 ** 30 };

/** What a container asks for under the first of these rules that matches it. */
function ask(
  rules: object[],
  container: Parameters<typeof containerOf>[0] = {},
  pod: Parameters<typeof podOf>[0] = {},
) {
  const [inPod, created] = [podOf(pod), containerOf(container)];
  const rule = matching(parseRules(rules, 'rules'), ruleSubject(inPod, created));
  return containerRequest('numalign', inPod, created, rule);
}

describe('A rule', () => {
  const SUBJECT = {
    namespace: 'ran-north',
    container: 'main',
    labels: { app: 'upf', tier: 'gold' },
    annotations: { 'example.com/line': 'fast' },
    qosClass: 'Guaranteed',
  };

  it.each([
    [{}],
    [{ namespaces: 'ran-*' }],
    [{ namespaces: ['core', 'ran-north'], containers: ['main'] }],
    [{ labels: { app: ['smf', 'upf'], tier: '*' } }],
    [{ annotations: { 'example.com/line': 'f*t' } }],
    [{ qosClasses: ['Guaranteed', 'Burstable'] }],
  ])('matches if all of its conditions hold: %j', (match) => {
    expect(unmet(ruleOf({ match }), SUBJECT)).toEqual([]);
  });

  it.each([
    [{ namespaces: 'ran' }, ['namespaces']],
    [{ namespaces: 'ran-*', labels: { app: 'upf', zone: '*' } }, ['labels']],
    [{ containers: 'mai.', qosClasses: 'BestEffort' }, ['containers', 'qosClasses']],
    [{ annotations: { 'example.com/line': 'slow' } }, ['annotations']],
  ])('says which conditions do not hold: %j', (match, conditions) => {
    expect(unmet(ruleOf({ match }), SUBJECT)).toEqual(conditions);
  });

  it.each([
    [{ exclusve: true }, /rules\[0\] has no option "exclusve"; did you mean "exclusive"/],
    [{ match: { namespace: 'a' } }, /rules\[0\]\.match .*did you mean "namespaces"/],
    [{ match: { priorityClass: 'high' } }, /does not know the priority class: give such pods a label/],
    [{ match: { namespaces: [] } }, /rules\[0\]\.match\.namespaces must be a text or a list/],
    [{ match: { labels: 'app' } }, /rules\[0\]\.match\.labels must be values by key/],
    [{ match: { qosClasses: 'guaranteed' } }, /one of Guaranteed, Burstable, BestEffort/],
    [{ exclusive: 1.5 }, /rules\[0\]\.exclusive must be true, false, or a number/],
    [{ cpus: '' }, /rules\[0\]\.cpus must be a list of CPUs/],
    [{ cpus: '4-' }, /4-/],
    [{ pool: 'socket' }, /rules\[0\]\.pool must be one of numa-node, l3-group/],
    [{ policy: 'strict' }, /policy must be/],
    [{ annotations: 'no' }, /rules\[0\]\.annotations must be true or false/],
  ])('is refused if it is wrong: %j', (fields, message) => {
    expect(() => ruleOf(fields)).toThrow(message);
  });
});

describe('A container', () => {
  it('follows the first rule that matches', () => {
    const rules = [
      { match: { namespaces: 'other' }, exclusive: 4 },
      {
        match: { containers: 'main' },
        exclusive: 3,
        cpus: '4-7',
        coreKind: 'performance',
        policy: 'restricted',
      },
      { exclusive: 5 },
    ];
    const { exclusiveCpus, within, placement, pod } = ask(rules);
    expect([exclusiveCpus, String(within), placement]).toEqual([
      3,
      '4-7',
      { coreKind: 'performance', policy: 'restricted' },
    ]);
    expect(pod).toMatchObject({ qosClass: 'Guaranteed', containers: [{ limits: { cpu: 3 } }] });
  });

  it.each([
    ['its limit, rounded up', { cpus: 2.5 }, 3],
    ['its request without a limit', { shares: 1536 }, 2],
    ['none if it asks for nothing', { shares: 2 }, 0],
    ['its own whole number', GUARANTEED, 2],
  ])('gets as many exclusive CPUs with `exclusive: true` as %s', (_, container, cpus) => {
    expect(ask([{ exclusive: true }], container).exclusiveCpus).toBe(cpus);
  });

  it('gets none with `exclusive: false`, and what it would get without it', () => {
    expect(ask([{ exclusive: false }], GUARANTEED).pod).toBeNull();
    expect(ask([{ policy: 'none' }], GUARANTEED)).toMatchObject({
      exclusiveCpus: 2,
      placement: { policy: 'none' },
    });
  });

  it('has annotations that take precedence, unless the rule allows none', () => {
    const annotations = { 'numalign.io/cpu': '1', 'numalign.io/core-kind': 'any' };
    const rule = { exclusive: 3, coreKind: 'efficiency' };
    expect(ask([rule], {}, { annotations })).toMatchObject({
      exclusiveCpus: 1,
      placement: { coreKind: 'any' },
    });
    expect(ask([{ ...rule, annotations: false }], {}, { annotations })).toMatchObject({
      exclusiveCpus: 3,
      placement: { coreKind: 'efficiency' },
    });
  });

  it.each([['numalign.io/cpu'], ['numalign.io/smt.main']])(
    'is refused with %s if its rule allows none',
    (name) => {
      const pod = podOf({ annotations: { [name]: '1', 'numalign.io/memory.other': '1Gi' } });
      const error = thrownBy(() => refuseAnnotations('strict', pod, containerOf()));
      expect(error).toMatchObject({ code: 'ERR_INVALID_ANNOTATION', details: { value: name } });
    },
  );
});
