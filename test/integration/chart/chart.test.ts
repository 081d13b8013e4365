/** What the chart renders, held against the contracts that the code keeps. */
import { describe, expect, test } from 'vitest';
import { OUTPUT_SCHEMA_MAX } from '../../../src/api/functions.ts';
import { KINDS } from '../../../src/api/kinds.ts';
import { allReconcilers } from '../../../src/controller/reconcilers.ts';
import { readSettings as readControllerSettings } from '../../../src/controller/settings.ts';
import { MODEL_PATHS } from '../../../src/domain/egress/decideModelRequest.ts';
import {
  AUDIENCE_IDENTITY,
  LABEL_COMPONENT,
  LABEL_PLUGIN,
  LABEL_TOOL,
  PORT_HEALTH,
  PORT_METRICS,
  PORT_TLS,
  TOOL_RESOURCE_PREFIX,
  TRUST_CONFIG_MAP,
} from '../../../src/domain/naming.ts';
import { readSettings as readEgressSettings } from '../../../src/egress/settings.ts';
import { leaderRules, rulesFor } from '../../../src/engine/rules.ts';
import { readSettings as readGatewaySettings } from '../../../src/gateway/settings.ts';
import { componentLabels, DEFAULT_RESOURCES } from '../../../src/reconcilers/operator.ts';
import { UPSTREAM_CA } from '../../../src/reconcilers/trust/reconcile.ts';
import { chart, helm, NAMESPACE, named, ofKind, type Rendered, render, runHelm, workload } from './render.ts';

const components = ['controller', 'gateway', 'egress', 'edge'] as const;

/** As the kubelet would give it. */
function environmentOf(objects: readonly Rendered[], component: string): Record<string, string> {
  const fields: Record<string, string> = {
    'metadata.namespace': NAMESPACE,
    'metadata.name': `oz0-${component}-x`,
    'metadata.uid': '0-0',
    'spec.nodeName': 'node1',
  };
  const [container] = workload(objects, component).spec.template.spec.containers;
  return Object.fromEntries(
    container.env.map(({ name, value, valueFrom }: Rendered) => [name, value ?? fields[valueFrom.fieldRef.fieldPath]]),
  );
}

describe.skipIf(helm === undefined)(
  `the chart${helm === undefined ? ' (skipped: no helm, see hack/README.md)' : ''}`,
  () => {
    const objects = helm === undefined ? [] : render();

    test('[O01] lints, and renders with no values', () => {
      expect(runHelm('lint', '--strict', chart)).toMatchObject({ ok: true });
      expect(objects.length).toBeGreaterThan(30);
    });

    test('[O01] every object has a namespace of its own or none, and a name once', () => {
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
      expect(
        objects.filter(({ metadata }) => metadata.namespace !== undefined && metadata.namespace !== NAMESPACE),
      ).toEqual([]);
    });

    test("[O01] uninstalling leaves the kinds, and so users' objects", () => {
      const kinds = ofKind(objects, 'CustomResourceDefinition');
      expect(kinds.map(({ metadata }) => metadata.name).sort()).toEqual(
        KINDS.map(({ plural }) => `${plural}.oz0.ai`).sort(),
      );
      for (const { metadata } of kinds)
        expect(metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
    });

    test('[O07] nothing stands in the way of the API server, and no Secret is rendered', () => {
      const kinds = new Set(objects.map(({ kind }) => kind));
      for (const kind of ['Secret', 'ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'APIService']) {
        expect(kinds).not.toContain(kind);
      }
    });

    test('[S09] the key of a model gateway is mounted into egress only; without a gateway the controller says so', () => {
      expect(JSON.stringify(objects)).not.toContain('OZ0_MODEL');
      const given = render('--set=model.url=https://models.example.com/base,model.secretName=model-key');
      const { containers, volumes } = workload(given, 'egress').spec.template.spec;
      expect(volumes).toContainEqual({
        name: 'model',
        secret: { secretName: 'model-key', optional: true, items: [{ key: 'key', path: 'key' }] },
      });
      expect(containers[0].volumeMounts).toContainEqual({ name: 'model', mountPath: '/oz0/model', readOnly: true });
      const settings = environmentOf(given, 'egress');
      // As the kubelet reads it.
      settings['OZ0_MODEL_FORMAT'] = settings['OZ0_MODEL_FORMAT']?.replaceAll('$$', () => '$') ?? '';
      expect(readEgressSettings(settings).model).toMatchObject({
        url: new URL('https://models.example.com/base'),
        keyFile: '/oz0/model/key',
        format: 'Bearer '.concat('$', '{value}'),
        paths: MODEL_PATHS,
      });
      expect(environmentOf(given, 'controller')).toMatchObject({ OZ0_MODEL_GATEWAY: 'true' });
      for (const component of ['controller', 'gateway', 'edge']) {
        expect(JSON.stringify(workload(given, component))).not.toContain('model-key');
      }
      expect(() => render('--set=model.url=models.example.com')).toThrow(/model/);
    });

    test('further CAs for upstream servers are a ConfigMap that the controller reads, or none', () => {
      const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
      expect(objects.filter(({ metadata }) => metadata.name === UPSTREAM_CA)).toEqual([]);
      const found = named(render(`--set=egress.upstreamCA=${pem}`), 'ConfigMap', UPSTREAM_CA);
      expect(found).toMatchObject({ metadata: { namespace: NAMESPACE }, data: { 'ca.crt': `${pem}\n` } });
      expect(() => render('--set=egress.upstreamCA=/etc/ca.crt')).toThrow(/upstreamCA/);
    });

    describe.each(components)('%s', (component) => {
      const { metadata, spec } = helm === undefined ? ({} as Rendered) : workload(objects, component).spec.template;

      test('[S01] its pod meets Pod Security "restricted", with a read-only root', () => {
        expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        expect(spec).not.toHaveProperty('hostNetwork');
        for (const container of spec.containers) {
          expect(container.securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
          expect(container.resources.limits.memory).toBeDefined();
          expect(container.resources.requests.cpu).toBeDefined();
        }
        for (const volume of spec.volumes ?? []) {
          expect(Object.keys(volume).filter((key) => !['name', 'projected', 'configMap'].includes(key))).toEqual([]);
        }
      });

      test('ports and probes are those of naming.ts', () => {
        const [container] = spec.containers;
        const ports = Object.fromEntries(
          container.ports.map(({ name, containerPort }: Rendered) => [name, containerPort]),
        );
        expect(ports).toEqual({
          ...(component === 'controller' ? {} : { tls: PORT_TLS }),
          health: PORT_HEALTH,
          metrics: PORT_METRICS,
        });
        expect(container.livenessProbe.httpGet).toEqual({ path: '/livez', port: 'health' });
        expect(container.readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'health' });
        expect(container.args).toEqual([component]);
      });

      test('workload, Service and NetworkPolicies select it by the same labels as tools do', () => {
        const labels = componentLabels(component);
        expect(metadata.labels).toMatchObject(labels);
        expect(workload(objects, component).spec.selector.matchLabels).toEqual(labels);
        expect(named(objects, 'NetworkPolicy', `oz0-${component}`).spec.podSelector.matchLabels).toEqual(labels);
        for (const service of ofKind(objects, 'Service').filter((one) =>
          one.metadata.name.startsWith(`oz0-${component}`),
        )) {
          expect(service.spec.selector).toEqual(labels);
          expect(service.spec.ports).toEqual([{ name: 'tls', protocol: 'TCP', port: 443, targetPort: 'tls' }]);
        }
      });

      test('[D04] it has a token for its identity, unless it signs its own', () => {
        const tokens = (spec.volumes ?? []).flatMap(({ projected }: Rendered) => projected?.sources ?? []);
        const expected = { audience: AUDIENCE_IDENTITY, path: 'token', expirationSeconds: 3600 };
        expect(tokens).toEqual(component === 'edge' ? [] : [{ serviceAccountToken: expected }]);
      });
    });

    test('the environment is what the code reads', () => {
      expect(readControllerSettings(environmentOf(objects, 'controller'))).toMatchObject({
        namespace: NAMESPACE,
        trustDomain: 'cluster.local',
        image: 'ghcr.io/oz0/oz0-operator:0.1.0',
        userNamespaces: 'prefer',
        resources: DEFAULT_RESOURCES,
      });
      expect(readGatewaySettings(environmentOf(objects, 'gateway'))).toMatchObject({ ownNode: 'node1' });
      const set = render(
        '--set=tools.userNamespaces=require,tools.limits.ephemeral-storage=1Gi,tools.requests.cpu=10m',
      );
      expect(readControllerSettings(environmentOf(set, 'controller'))).toMatchObject({
        userNamespaces: 'require',
        resources: { limits: { 'ephemeral-storage': '1Gi' }, requests: { cpu: '10m' } },
      });
    });

    test('[D05] a gateway is on every node, in a rollout too, and drains for as long as a call may take', () => {
      const { spec } = workload(objects, 'gateway');
      expect(spec.updateStrategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
      expect(spec.template.spec).toMatchObject({
        terminationGracePeriodSeconds: 660,
        tolerations: [{ operator: 'Exists' }],
      });
      expect(named(objects, 'Service', 'oz0-gateway').spec.internalTrafficPolicy).toBe('Local');
      expect(named(objects, 'Service', 'oz0-gateway-any').spec).not.toHaveProperty('internalTrafficPolicy');
    });

    test('[O07] of all others there are two, on different nodes where possible, and a drain takes one at a time', () => {
      for (const component of ['controller', 'egress', 'edge']) {
        const { spec } = workload(objects, component);
        expect(spec.replicas).toBe(2);
        expect(spec.template.spec.topologySpreadConstraints).toHaveLength(1);
        expect(named(objects, 'PodDisruptionBudget', `oz0-${component}`).spec.maxUnavailable).toBe(1);
      }
      const single = render('--set=edge.replicas=1');
      expect(ofKind(single, 'PodDisruptionBudget').map(({ metadata }) => metadata.name)).not.toContain('oz0-edge');
    });

    test('the image may be a tag or a digest, and tools get the same', () => {
      const digest = `sha256:${'a'.repeat(64)}`;
      const pinned = render(`--set=image.repository=registry.example/oz0,image.tag=x,image.digest=${digest}`);
      for (const component of components) {
        expect(workload(pinned, component).spec.template.spec.containers[0].image).toBe(
          `registry.example/oz0@${digest}`,
        );
      }
      expect(environmentOf(pinned, 'controller')['OZ0_IMAGE']).toBe(`registry.example/oz0@${digest}`);
    });

    describe('[case 106] the operator under its own policies', () => {
      const policy = (component: string, ...settings: string[]) =>
        named(settings.length === 0 ? objects : render(...settings), 'NetworkPolicy', `oz0-${component}`).spec;
      /** Who a rule names, in a word. */
      const peers = (rules: Rendered[] | undefined, side: 'from' | 'to'): string[] =>
        (rules ?? []).flatMap((rule) =>
          (rule[side] ?? [{ everybody: true }]).map(
            ({ ipBlock, podSelector, namespaceSelector, everybody }: Rendered) => {
              if (everybody) return 'everybody';
              const ports = rule.ports.map(({ port }: Rendered) => port).join(',');
              if (ipBlock) return `${ipBlock.cidr}:${ports}`;
              const labels = podSelector?.matchLabels ?? {};
              const who = labels[LABEL_COMPONENT] ?? labels['k8s-app'];
              if (who) return `${who}:${ports}`;
              if (podSelector?.matchExpressions?.[0].key === LABEL_TOOL) return `tools:${ports}`;
              return `${JSON.stringify(namespaceSelector)}:${ports}`;
            },
          ),
        );
      const private_ = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];
      const apiServer = private_.map((range) => `${range}:443,6443`);
      const dns = ['kube-dns:53,53', '169.254.20.10/32:53,53'];

      test('everything is refused that no policy opens', () => {
        expect(named(objects, 'NetworkPolicy', 'oz0-default-deny').spec).toEqual({
          podSelector: { matchExpressions: [{ key: LABEL_COMPONENT, operator: 'Exists' }] },
          policyTypes: ['Ingress', 'Egress'],
        });
        for (const component of components) expect(policy(component).policyTypes).toEqual(['Ingress', 'Egress']);
      });

      test.each([
        ['controller', [], [...apiServer, 'edge:8443', 'tools:8443', ...dns]],
        ['gateway', ['{}:8443'], [...apiServer, 'edge:8443', 'tools:8443', ...dns]],
        // All that is public; what is not is opened by connectAllowNet, and judged by egress itself once more.
        ['egress', ['tools:8443'], [...apiServer, 'edge:8443', ...dns, '0.0.0.0/0:', '::/0:']],
        ['edge', ['egress:8443', 'gateway:8443', 'controller:8443'], apiServer],
      ])('%s', (component, ingress, egress) => {
        expect(peers(policy(component).ingress, 'from')).toEqual(ingress);
        expect(peers(policy(component).egress, 'to')).toEqual(egress);
      });

      test('[S09] a model gateway within the cluster is opened to egress alone', () => {
        const settings = [
          '--set=model.url=http://llm.models.svc:4000,model.port=4000,model.peers[0].podSelector.matchLabels.app=llm',
        ];
        const opened = JSON.stringify(policy('egress', ...settings).egress);
        expect(opened).toContain(
          '[{"podSelector":{"matchLabels":{"app":"llm"}}}],"ports":[{"protocol":"TCP","port":4000}]',
        );
        expect(JSON.stringify(policy('gateway', ...settings))).not.toContain('4000');
      });

      test('the API server may be named, and metrics be opened to a namespace', () => {
        const settings = [
          '--set=apiServer.cidrs={203.0.113.7/32},apiServer.ports={6443},metrics.namespaces={monitoring}',
        ];
        expect(peers(policy('edge', ...settings).egress, 'to')).toEqual(['203.0.113.7/32:6443']);
        for (const component of components) {
          expect(JSON.stringify(policy(component, ...settings).ingress)).toContain('"values":["monitoring"]');
        }
      });
    });

    describe('rights', () => {
      const rules = (kind: string, name: string): Rendered[] =>
        helm === undefined ? [] : named(objects, kind, name).rules;
      const grants = (given: Rendered[], group: string, resource: string): string[] =>
        given
          .filter(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(resource))
          .flatMap(({ verbs }) => verbs);

      test('[D02] [case 121] the controller may do what its reconcilers declare', () => {
        const reconcilers = allReconcilers(
          {
            namespace: NAMESPACE,
            trustDomain: 'x',
            image: 'x',
            userNamespaces: true,
            modelGateway: false,
            resources: DEFAULT_RESOURCES,
          },
          () => Promise.reject(new Error('not asked')),
        );
        for (const { apiGroups, resources, verbs } of rulesFor(reconcilers)) {
          const [group = '', resource = ''] = [apiGroups[0], resources[0]];
          expect(grants(rules('ClusterRole', 'oz0-controller'), group, resource), `${group}/${resource}`).toEqual(
            expect.arrayContaining([...verbs]),
          );
        }
        for (const rule of leaderRules('oz0-controller')) expect(rules('Role', 'oz0-controller')).toContainEqual(rule);
      });

      test('[D02] and nothing is written of kinds that they do not own', () => {
        const reconcilers = allReconcilers(
          {
            namespace: NAMESPACE,
            trustDomain: 'x',
            image: 'x',
            userNamespaces: true,
            modelGateway: false,
            resources: DEFAULT_RESOURCES,
          },
          () => Promise.reject(new Error('not asked')),
        );
        const declared = rulesFor(reconcilers);
        // Calls that are long over are no reconciler's objects.
        const swept = { apiGroups: ['oz0.ai'], resources: ['toolcalls'], verbs: ['delete'] };
        for (const { apiGroups, resources, verbs } of rules('ClusterRole', 'oz0-controller')) {
          for (const resource of resources as string[]) {
            const may = grants([...declared, swept] as Rendered[], apiGroups[0], resource);
            const writes = (verbs as string[]).filter((verb) => !['get', 'list', 'watch'].includes(verb));
            expect(may, `${apiGroups[0]}/${resource}`).toEqual(expect.arrayContaining(writes));
          }
        }
      });

      test('[D02] no role of a cluster names Secrets, and none has a wildcard', () => {
        for (const role of [...ofKind(objects, 'ClusterRole'), ...ofKind(objects, 'Role')]) {
          for (const rule of role.rules) {
            expect(JSON.stringify(rule), role.metadata.name).not.toContain('*');
            if (role.kind === 'ClusterRole') expect(rule.resources, role.metadata.name).not.toContain('secrets');
          }
        }
      });

      test('[Y03] the verb decide is in one role, and no part of the operator has it', () => {
        const deciding = [...ofKind(objects, 'ClusterRole'), ...ofKind(objects, 'Role')].filter((role) =>
          JSON.stringify(role.rules).includes('"decide"'),
        );
        expect(deciding.map(({ metadata }) => metadata.name)).toEqual(['oz0-approver']);
        expect(JSON.stringify(deciding)).not.toContain('deciders');
      });

      test('[O01] Kubernetes’ own roles take in Plugins and Tools, if wanted, and never Agents', () => {
        const taken = (all: Rendered[]) =>
          ofKind(all, 'ClusterRole').filter(({ metadata }) =>
            Object.keys(metadata.labels).some((key) => key.includes('aggregate-to')),
          );
        expect(
          taken(objects)
            .map(({ metadata }) => metadata.name)
            .sort(),
        ).toEqual(['oz0-author', 'oz0-reader']);
        const text = JSON.stringify(taken(objects).map((role) => role.rules));
        for (const kept of ['agents', 'toolpolicies', 'stops', 'snapshotapprovals', 'toolcalls', 'decide']) {
          expect(text).not.toContain(kept);
        }
        expect(taken(render('--set=rbac.aggregate=false'))).toEqual([]);
      });
    });

    describe('admission', () => {
      const policies = ofKind(objects, 'ValidatingAdmissionPolicy');

      test('[D04] every policy fails closed, is bound, denies, and says what to do', () => {
        expect(policies).toHaveLength(15);
        for (const { metadata, spec } of policies) {
          expect(spec.failurePolicy, metadata.name).toBe('Fail');
          const binding = named(objects, 'ValidatingAdmissionPolicyBinding', metadata.name);
          expect(binding.spec).toEqual({ policyName: metadata.name, validationActions: ['Deny', 'Audit'] });
          for (const { message, messageExpression, reason } of spec.validations) {
            expect(reason, metadata.name).toBe('Forbidden');
            expect((message ?? messageExpression).length, metadata.name).toBeGreaterThan(30);
          }
        }
      });

      test('[D04] names, labels and accounts are those of naming.ts', () => {
        const text = JSON.stringify(policies);
        for (const constant of [
          `'${TOOL_RESOURCE_PREFIX}'`,
          `'${LABEL_TOOL}'`,
          `'${LABEL_PLUGIN}'`,
          `== '${TRUST_CONFIG_MAP}'`,
        ]) {
          expect(text).toContain(constant);
        }
        expect(text).toContain(`system:serviceaccount:${NAMESPACE}:oz0-controller`);
      });

      test('[D04] without a break-glass group nobody gets into a tool pod', () => {
        const debugging = (...settings: string[]) =>
          named(
            settings.length === 0 ? objects : render(...settings),
            'ValidatingAdmissionPolicy',
            'tool-debugging.oz0.ai',
          ).spec.validations[0].expression;
        expect(debugging()).toContain("'oz0:break-glass'");
        expect(debugging('--set=admission.breakGlassGroup=')).toBe('false');
      });

      test('[Y03] gateways write calls, and a break-glass group, where there is one, deletes them', () => {
        const calls = (...settings: string[]) =>
          JSON.stringify(named(render(...settings), 'ValidatingAdmissionPolicy', 'tool-calls.oz0.ai'));
        expect(calls()).toContain("'oz0:break-glass'");
        expect(calls('--set=admission.breakGlassGroup=')).not.toContain('break-glass');
        expect(calls('--set=admission.breakGlassGroup=')).not.toContain('in an emergency');
        expect(calls()).toContain(`system:serviceaccount:${NAMESPACE}:oz0-gateway`);
      });

      test('[Y06] the cluster is stopped from the namespace that the chart is installed in', () => {
        const [{ expression }] = named(objects, 'ValidatingAdmissionPolicy', 'stops.oz0.ai').spec.validations;
        expect(expression).toContain(`namespace == '${NAMESPACE}'`);
      });

      test('the bound of an output schema is that of its kind', () => {
        const text = JSON.stringify(named(objects, 'ValidatingAdmissionPolicy', 'tools.oz0.ai').spec);
        expect(text).toContain(`size() <= ${OUTPUT_SCHEMA_MAX}`);
      });

      test.each([
        [[], undefined],
        [['v1beta1'], 'v1beta1'],
        [['v1beta1', 'v1'], 'v1'],
      ])('[P03] who applied an approval is stamped where the API server serves that: %j', (served, version) => {
        const found = render(
          ...served.map((one) => `--api-versions=admissionregistration.k8s.io/${one}/MutatingAdmissionPolicy`),
        ).filter(({ kind }) => kind.startsWith('MutatingAdmission'));
        expect(found.map(({ kind, apiVersion }) => `${apiVersion} ${kind}`)).toEqual(
          version === undefined
            ? []
            : ['MutatingAdmissionPolicy', 'MutatingAdmissionPolicyBinding'].map(
                (kind) => `admissionregistration.k8s.io/${version} ${kind}`,
              ),
        );
        for (const { metadata } of found) expect(metadata.name).toBe('snapshot-approvals.oz0.ai');
      });

      test("[D04] what a distribution runs beside Kubernetes' controllers may be trusted", () => {
        const user = 'system:serviceaccount:openshift-infra:x';
        const text = JSON.stringify(
          ofKind(render(`--set=admission.trustedUsers={${user}}`), 'ValidatingAdmissionPolicy'),
        );
        expect(text).toContain(`, '${user}']`);
      });
    });

    test.each([
      ['an unknown value', '--set=gatway.replicas=2'],
      ['an unknown value below', '--set=edge.replica=2'],
      ['no replica', '--set=edge.replicas=0'],
      ['a quote in a name that becomes an expression', "--set=admission.breakGlassGroup=x' || true || '"],
      ['a quote in a user', "--set=admission.trustedUsers={x'}"],
      ['an empty trusted user', '--set-json=admission.trustedUsers=[""]'],
      ['callers that are nobody, which would mean everybody', '--set-json=gateway.callers=[]'],
      ['a network without its length', '--set=apiServer.cidrs={10.0.0.1}'],
      ['a digest of another form', '--set=image.digest=latest'],
      ['an amount that no tool has', '--set=tools.limits.gpu=1'],
    ])('[O01] values are refused: %s', (_, setting) => {
      expect(() => render(setting)).toThrow(/values don't meet the specifications|failed|not allowed/i);
    });
  },
);
