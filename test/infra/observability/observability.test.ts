import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { parser } from '@prometheus-io/lezer-promql'
import { afterAll, describe, expect, it, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { startCluster } from '../../support/cluster.ts'
import { needs } from '../../support/needs.ts'
import { root } from '../../support/test-projects.ts'

interface UsedNames {
  metrics: string[]
  labels: string[]
}

/** Returns the metrics and labels in an expression. Throws if it is not PromQL. */
function namesIn(expression: string): UsedNames {
  const used: UsedNames = { metrics: [], labels: [] }
  parser.parse(expression).iterate({
    enter({ type, name, from, to, node }) {
      const text = expression.slice(from, to)
      if (type.isError) throw new Error(`not PromQL at ${from}: ${expression}`)
      if (name === 'Identifier' && node.parent?.name === 'VectorSelector') used.metrics.push(text)
      if (name === 'LabelName') used.labels.push(text)
    },
  })
  return used
}

/** Returns the labels of the samples in a scrape, by the sample's name. */
function labelsOf(scrape: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const [, name = '', labels = ''] of scrape.matchAll(/^([a-z_]\w*)(?:\{(.*)\})? \S+$/gm)) {
    const known = found.get(name) ?? new Set()
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label)
    found.set(name, known)
  }
  return found
}

const run = promisify(execFile)
const textOf = (file: string) => readFileSync(path.join(root, file), 'utf8')

const rule = z.object({
  alert: z.string(),
  expr: z.string(),
  annotations: z.record(z.string(), z.string()),
})
const rules = z
  .object({ groups: z.array(z.object({ rules: z.array(rule) })) })
  .parse(parse(textOf('infra/observability/alerts.yaml')))
  .groups.flatMap((group) => group.rules)

const panel = z.object({
  title: z.string(),
  targets: z.array(z.object({ expr: z.string() })).default([]),
})
const panels = z
  .object({ panels: z.array(panel) })
  .parse(JSON.parse(textOf('infra/observability/grafana.json'))).panels

/** Metrics and labels that Prometheus adds. */
const ownMetrics = ['up']
const ownLabels = ['job', 'instance']

describe('every metric and label', async () => {
  const cluster = await startCluster({ log: 'postgres', processes: 1 })
  afterAll(() => cluster.stop())
  // Keys have no series before their first document.
  const opening = {
    clientPublicKey: Buffer.alloc(32, 9).toString('base64url'),
    sdk: { name: 'test', version: '1', platform: 'web' },
    page: { url: 'https://shop.example/' },
  }
  const opened = await cluster.fetch(0, '/v2/collect/sessions', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${cluster.owner.publishable.key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(opening),
  })
  expect(opened.status).toBe(200)
  const exposed = labelsOf(await (await cluster.fetch(0, '/metrics')).text())

  const expressions = [
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
  ]
  it.each(expressions)('of "%s" is exposed by a server with all roles', (_name, expression) => {
    const { metrics, labels } = namesIn(expression.replaceAll('$__rate_interval', '5m'))
    expect(metrics.length).toBeGreaterThan(0)
    expect(metrics.filter((name) => !exposed.has(name) && !ownMetrics.includes(name))).toEqual([])
    const known = new Set([
      ...ownLabels,
      ...metrics.flatMap((name) => [...(exposed.get(name) ?? [])]),
    ])
    expect(labels.filter((label) => !known.has(label))).toEqual([])
  })

  it('that a server exposes is on the dashboard or in an alert', () => {
    const used = new Set(
      expressions.flatMap(([, text]) => namesIn(text.replaceAll('$__rate_interval', '5m')).metrics),
    )
    const own = [...exposed.keys()].filter((name) => name.startsWith('tidegate_'))
    const families = new Set(own.map((name) => name.replace(/_(bucket|sum|count)$/, '')))
    const isUsed = (family: string) =>
      [...used].some((name) => name.replace(/_(bucket|sum|count)$/, '') === family)
    // Redundant: tidegate_consumer_lag_records includes the read models.
    expect([...families].filter((family) => !isUsed(family))).toEqual([
      'tidegate_projection_lag_records',
    ])
  })
})

test('the documentation lists the alerts with their runbooks', () => {
  const rows = textOf('docs/operate/operations.md').matchAll(
    /^\| `(Tidegate\w+)` \|.*\]\(([\w.]*)(#[\w-]+)\) \|$/gm,
  )
  const documented = [...rows].map(([, name, page = '', anchor]) => [
    name,
    `docs/operate/${page || 'operations.md'}${anchor}`,
  ])
  expect(documented).toEqual(rules.map(({ alert, annotations }) => [alert, annotations.runbook]))
})

needs('promtool').describe('promtool', () => {
  const promtool = (...args: string[]) => run('promtool', args, { cwd: root })

  it('accepts the rules', async () => {
    expect((await promtool('check', 'rules', 'infra/observability/alerts.yaml')).stdout).toContain(
      'SUCCESS',
    )
  })

  it('fires each alert when it should, and only then', async () => {
    const file = 'test/infra/observability/alerts.promtool.yaml'
    expect((await promtool('test', 'rules', file)).stdout).toContain('SUCCESS')
    for (const { alert } of rules) expect(textOf(file).split(alert).length).toBeGreaterThan(2)
  })
})
