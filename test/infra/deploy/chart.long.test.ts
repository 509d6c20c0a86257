import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, expect } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { connectionsOf } from '../../../services/server/connections.ts'
import { allRoles } from '../../../services/server/roles.ts'
import {
  createManifestCheck,
  findHelm,
  type Helm,
  type Manifest,
  type PodTemplate,
} from '../../support/helm.ts'
import { needs } from '../../support/needs.ts'
import { root } from '../../support/test-projects.ts'

const { describe, it } = needs('helm')

const minimal = ['secrets.existingSecret=tidegate']
const full = [
  ...minimal,
  'secrets.settings={DATABASE_URL,TIDEGATE_MASTER_KEYS,KAFKA_SASL_PASSWORD,SCHEMA_REGISTRY_URL}',
  'settings.KAFKA_BROKERS=one:9092\\,two:9092',
  'settings.TRUSTED_PROXIES=10.0.0.0/8',
  'settings.TOPIC_PARTITIONS=24',
  'migrate.existingSecret=owner',
  'migrate.grant=serving',
  'autoscaling.enabled=true',
  'ingress.enabled=true',
  'ingress.className=nginx',
  'ingress.host=tidegate.example',
  'ingress.tlsSecret=tls',
  'ingress.annotations.a=b',
  'extraVolumes[0].name=kafka',
  'extraVolumes[0].secret.secretName=kafka-ca',
  'extraVolumeMounts[0].name=kafka',
  'extraVolumeMounts[0].mountPath=/etc/kafka',
  'imagePullSecrets[0].name=pull',
  'nodeSelector.disk=fast',
  'tolerations[0].operator=Exists',
  'serviceMonitor.enabled=true',
  'serviceMonitor.labels.release=prometheus',
  'networkPolicy.enabled=true',
  'networkPolicy.ingressFrom[0].namespaceSelector.matchLabels.name=ingress-nginx',
  'networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring',
  'schemas.enabled=true',
  'networkPolicy.schemasFrom[0].namespaceSelector.matchLabels.name=analysts',
  'affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1',
  'affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey=zone',
]

const ofKind = (manifests: Manifest[], kind: string) => manifests.filter((one) => one.kind === kind)
/** Services with an address. The headless ones are for await-role.ts. */
const addressable = (manifests: Manifest[]) =>
  ofKind(manifests, 'Service').filter(({ spec }) => spec.clusterIP !== 'None')
const names = (manifests: Manifest[]) => manifests.map(({ metadata }) => metadata.name).sort()
const ofRoles = allRoles.map((role) => `shop-tidegate-${role}`).sort()

function podOf({ metadata, spec }: Manifest): PodTemplate {
  if (!spec.template) throw new Error(`${metadata.name} has no pods`)
  return spec.template
}

const containerOf = (manifest: Manifest) => podOf(manifest).spec.containers[0]

describe('the chart', () => {
  let helm: Helm
  let check: Awaited<ReturnType<typeof createManifestCheck>>
  let basic: Manifest[]
  let all: Manifest[]
  beforeAll(async () => {
    ;[helm, check] = await Promise.all([findHelm(), createManifestCheck()])
    basic = await helm.render(minimal)
    all = await helm.render(full)
  }, 60_000)

  it('passes helm lint', async () => {
    await helm.lint(minimal)
    await helm.lint(full)
  })

  it('conforms to the Kubernetes schemas', async () => {
    const faults = (manifests: Manifest[]) =>
      manifests
        // Defined by the Prometheus operator, not by Kubernetes.
        .filter(({ kind }) => kind !== 'ServiceMonitor')
        .flatMap((one) => check(one).map((fault) => `${one.kind} ${one.metadata.name}: ${fault}`))
    expect(faults(basic)).toEqual([])
    expect(faults(all)).toEqual([])
    const [deployment] = structuredClone(ofKind(basic, 'Deployment'))
    if (!deployment) throw new Error('there is no deployment')
    Object.assign(containerOf(deployment), { readinesProbe: {}, image: 1 })
    expect(faults([deployment])).toEqual([
      expect.stringContaining('readinesProbe'),
      expect.stringContaining('/image must be string'),
    ])
  }, 60_000)

  it('has a deployment, a service and a disruption budget for each role', () => {
    for (const kind of ['Deployment', 'PodDisruptionBudget'])
      expect(names(ofKind(basic, kind))).toEqual(ofRoles)
    expect(names(addressable(basic))).toEqual(ofRoles)
    const roles = ofKind(basic, 'Deployment').map((one) => containerOf(one).args.join(' '))
    expect(roles.sort()).toEqual(allRoles.map((role) => `serve --roles ${role}`).sort())
  })

  it('has no optional resources by default', () => {
    const kinds = ['Ingress', 'HorizontalPodAutoscaler', 'ServiceMonitor', 'NetworkPolicy']
    expect(basic.filter(({ kind }) => kinds.includes(kind))).toEqual([])
  })

  it('selects the pods of the role', () => {
    const labels = new Map(
      ofKind(all, 'Deployment').map((one) => [one.metadata.name, podOf(one).metadata.labels]),
    )
    for (const { metadata, spec } of addressable(all))
      expect(labels.get(metadata.name)).toMatchObject(Object(spec.selector))
    for (const { metadata, spec } of [
      ...ofKind(all, 'Deployment'),
      ...ofKind(all, 'PodDisruptionBudget'),
    ])
      expect(labels.get(metadata.name)).toMatchObject(spec.selector?.matchLabels ?? { none: '' })
    const components = [...labels.values()].map((one) => one['app.kubernetes.io/component'])
    expect(components.sort()).toEqual([...allRoles].sort())
  })

  it('has probes for liveness and readiness', () => {
    for (const deployment of ofKind(basic, 'Deployment'))
      expect(containerOf(deployment)).toMatchObject({
        startupProbe: { httpGet: { path: '/livez', port: 'http' } },
        livenessProbe: { httpGet: { path: '/livez', port: 'http' } },
        readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
      })
  })

  it('runs without privileges', () => {
    for (const one of [...ofKind(all, 'Deployment'), ...ofKind(all, 'Job')]) {
      expect(podOf(one).spec).toMatchObject({
        automountServiceAccountToken: false,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 10001,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      })
      expect(containerOf(one).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  it('sets settings that a server accepts', () => {
    for (const one of [...ofKind(all, 'Deployment'), ...ofKind(all, 'Job')]) {
      const env = containerOf(one).env.map(({ name, value }) => [name, value] as const)
      const settings = Object.fromEntries(env.filter(([name]) => !name.endsWith('_FILE')))
      expect(readConfig(settings)).toMatchObject({
        PUBLIC_URL: 'https://tidegate.example',
        KAFKA_BROKERS: ['one:9092', 'two:9092'],
        TOPIC_PARTITIONS: 24,
        DRAIN_MS: 5000,
      })
    }
  })

  it('only references secrets, each mounted at the path in its setting', () => {
    expect([...ofKind(all, 'Secret'), ...ofKind(all, 'ConfigMap')]).toEqual([])
    const inServers = {
      DATABASE_URL: 'tidegate',
      TIDEGATE_MASTER_KEYS: 'tidegate',
      KAFKA_SASL_PASSWORD: 'tidegate',
      SCHEMA_REGISTRY_URL: 'tidegate',
    }
    for (const deployment of ofKind(all, 'Deployment'))
      expect(secretsOf(deployment)).toEqual(inServers)
    const [job] = ofKind(all, 'Job')
    const { TIDEGATE_MASTER_KEYS: _, ...inJob } = inServers
    expect(job && secretsOf(job)).toEqual({ ...inJob, DATABASE_URL: 'owner' })
  })

  it('migrates before each installation and upgrade', () => {
    const [job, ...others] = ofKind(all, 'Job')
    expect(others).toEqual([])
    expect(job?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
    expect(job && containerOf(job).args).toEqual(['migrate', '--grant', 'serving'])
  })

  it('replaces roles in the documented order, each after all pods of the previous one', async () => {
    const page = await readFile(path.join(root, 'docs/operate/production.md'), 'utf8')
    const [, listed = ''] = /^\d+\. Replace one role after the other: ([^.]*)\./m.exec(page) ?? []
    const order = [...listed.matchAll(/`(\w+)`/g)].map(([, role]) => String(role))
    expect(order.toSorted()).toEqual(allRoles.toSorted())
    const headless = new Map(
      ofKind(basic, 'Service').map(({ metadata, spec }) => [metadata.name, Object(spec.selector)]),
    )
    for (const deployment of ofKind(basic, 'Deployment')) {
      const [role] = containerOf(deployment).args.slice(-1)
      const before = order[order.indexOf(String(role)) - 1]
      const [wait, ...others] = podOf(deployment).spec.initContainers ?? []
      expect(others).toEqual([])
      if (before === undefined) {
        expect(wait).toBeUndefined()
        continue
      }
      const [, program = '', all = '', updated = ''] = wait?.command ?? []
      expect(existsSync(path.join(root, program.replace('/app/', '')))).toBe(true)
      const labels = podOf(deployment).metadata.labels
      expect(headless.get(all)).toMatchObject({ 'app.kubernetes.io/component': before })
      expect(headless.get(updated)).toEqual({
        ...headless.get(all),
        'tidegate/release': labels['tidegate/release'],
      })
    }
    const releaseOf = (manifests: Manifest[]) =>
      new Set(
        ofKind(manifests, 'Deployment').map(
          (one) => podOf(one).metadata.labels['tidegate/release'],
        ),
      )
    const next = await helm.render([...minimal, 'image.tag=next'])
    expect([releaseOf(basic).size, releaseOf(next).size]).toEqual([1, 1])
    expect(releaseOf(next)).not.toEqual(releaseOf(basic))
  })

  it('serves metrics on a port that the ingress does not expose', () => {
    const [monitor] = ofKind(all, 'ServiceMonitor')
    const relabelings = [{ targetLabel: 'job', replacement: 'tidegate' }]
    expect(monitor).toMatchObject({
      metadata: { labels: { release: 'prometheus' } },
      spec: { endpoints: [{ port: 'metrics', relabelings }] },
    })
    for (const service of addressable(all))
      expect(service.spec).toMatchObject({
        ports: expect.arrayContaining([
          expect.objectContaining({ name: 'http' }),
          expect.objectContaining({ name: 'metrics', port: 9464 }),
        ]),
      })
    for (const deployment of ofKind(all, 'Deployment'))
      expect(containerOf(deployment).env).toContainEqual({ name: 'METRICS_PORT', value: '9464' })
    expect(JSON.stringify(ofKind(all, 'Ingress'))).not.toContain('metrics')
  })

  it('serves schemas only from api, inside the cluster, if enabled', () => {
    const serving = (manifests: Manifest[]) =>
      ofKind(manifests, 'Deployment')
        .filter((one) => containerOf(one).env.some(({ name }) => name === 'SCHEMAS_PORT'))
        .map((one) => podOf(one).metadata.labels['app.kubernetes.io/component'])
    expect([serving(all), serving(basic)]).toEqual([['api'], []])
    expect(JSON.stringify(ofKind(all, 'Ingress'))).not.toContain('schemas')
  })

  it('limits access to pods to the configured sources', () => {
    const of = (name: string) => [{ namespaceSelector: { matchLabels: { name } } }]
    const [metrics, open, schemas] = ofKind(all, 'NetworkPolicy').map(({ spec }) => spec)
    expect(metrics?.ingress).toEqual([{ ports: [{ port: 'metrics' }], from: of('monitoring') }])
    expect(metrics?.podSelector).not.toHaveProperty('matchExpressions')
    expect(open?.ingress).toEqual([{ ports: [{ port: 'http' }], from: of('ingress-nginx') }])
    expect(open?.podSelector).toMatchObject({
      matchExpressions: [
        { key: 'app.kubernetes.io/component', values: ['collect', 'gate', 'api'] },
      ],
    })
    expect(schemas?.ingress).toEqual([{ ports: [{ port: 'schemas' }], from: of('analysts') }])
    expect(schemas?.podSelector).toMatchObject({
      matchLabels: { 'app.kubernetes.io/component': 'api' },
    })
  })

  it('sets the connections of each role, and rejects more pods than the database can serve', async () => {
    const connections = ({ env }: ReturnType<typeof containerOf>) =>
      Number(env.find(({ name }) => name === 'DATABASE_MAX_CONNECTIONS')?.value)
    const connectionsByRole = (manifests: Manifest[]) =>
      Object.fromEntries(
        ofKind(manifests, 'Deployment')
          .map(containerOf)
          .map((container) => [container.args.at(-1), connections(container)]),
      )
    const needed = (isLogEmbedded: boolean) =>
      allRoles.map((role) => [role, connectionsOf({ roles: [role], isLogEmbedded }).all] as const)
    // `all` uses Kafka.
    expect(connectionsByRole(all)).toEqual(Object.fromEntries(needed(false)))
    const embedded = connectionsByRole(basic)
    for (const [role, count] of needed(true)) expect(embedded[role]).toBeGreaterThanOrEqual(count)

    const onKafka = [...minimal, 'settings.KAFKA_BROKERS=one:9092']
    const sum = needed(false).reduce((total, [, each]) => total + 3 * each, 10)
    await helm.render([...onKafka, `database.maxConnections=${sum}`])
    const refused = helm.render([...onKafka, `database.maxConnections=${sum - 1}`])
    await expect(refused).rejects.toThrow(`may open ${sum} connections`)
    const many = [...onKafka, 'autoscaling.enabled=true', 'roles.api.autoscaling.max=40']
    await expect(helm.render(many)).rejects.toThrow(/may open \d{4} connections/)
  })

  it('scales every role, and consumers by their lag', () => {
    const scalers = ofKind(all, 'HorizontalPodAutoscaler')
    expect(scalers.map(({ spec }) => spec.scaleTargetRef?.name).sort()).toEqual(ofRoles)
    const byLag = scalers.filter(({ spec }) =>
      JSON.stringify(spec).includes('tidegate_consumer_lag_records'),
    )
    expect(names(byLag)).toEqual(
      ['projections', 'scoring', 'webhooks'].map((role) => `shop-tidegate-${role}`),
    )
    for (const deployment of ofKind(all, 'Deployment'))
      expect(deployment.spec).not.toHaveProperty('replicas')
  })

  it('routes only to existing services', () => {
    const [ingress] = ofKind(all, 'Ingress')
    const backends = JSON.stringify(ingress).matchAll(/"service":\{"name":"([^"]+)"/g)
    const services = new Set(names(ofKind(all, 'Service')))
    const missing = [...backends].filter(([, name]) => !services.has(String(name)))
    expect(missing).toEqual([])
    expect(JSON.stringify(ingress)).toContain('tidegate.example')
  })

  it('rejects unknown values', async () => {
    await expect(helm.render([])).rejects.toThrow('secrets.existingSecret is not set')
    for (const value of [
      'settings.KAFKA_BROKER=one',
      'settings.DATABASE_URL=x',
      'roles.colect.replicas=1',
    ])
      await expect(helm.render([...minimal, value])).rejects.toThrow(
        /additional|invalid propertyName|must be one of|property name/i,
      )
    await expect(helm.render([...minimal, 'ingress.enabled=true'])).rejects.toThrow(/host/)
  })
})

/** Returns the Secret of each setting that has a `<name>_FILE`. */
function secretsOf(manifest: Manifest): Record<string, string> {
  const { containers, volumes } = podOf(manifest).spec
  const [{ env, volumeMounts }] = containers
  const sources = volumes.flatMap(({ name, projected }) => {
    const folder = volumeMounts.find((mount) => mount.name === name)?.mountPath
    return (projected?.sources ?? []).flatMap(({ secret }) =>
      secret.items.map(({ key }) => [`${folder}/${key}`, secret.name] as const),
    )
  })
  const secretAt = new Map<string, string>(sources)
  return Object.fromEntries(
    env
      .filter(({ name }) => name.endsWith('_FILE'))
      .map(({ name, value }) => [
        name.slice(0, -'_FILE'.length),
        secretAt.get(value) ?? 'not mounted',
      ]),
  )
}
