import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { createTestDatabase } from '../../support/postgres.ts'
import { type ServerProcess, startServerProcess } from '../../support/server-process.ts'
import { root } from '../../support/test-projects.ts'

interface Values {
  ingress: { paths: { role: string; type: 'Prefix' | 'Exact'; path: string }[] }
  roles: Record<string, { autoscaling: { lag?: { group: string } } }>
}

interface Description {
  paths: Record<string, Record<string, { tags: string[] }>>
}

const read = (file: string) => readFile(path.join(root, 'infra/deploy', file), 'utf8')
const publicRoles = ['collect', 'gate', 'api']
/** Pages that the OpenAPI document leaves out. */
const pages = {
  api: [
    '/',
    '/assets/site.css',
    '/docs/errors',
    '/docs/',
    '/docs/api/sessions',
    '/docs/guide/scoring',
    '/docs/search.json',
    '/llms.txt',
    '/docs/operate/production.md',
  ],
  gate: ['/gate/assets/consent.css'],
}

/** Returns the role to which the Ingress routes a URL. An exact path or the longest prefix wins. */
function ingressRole({ ingress: { paths } }: Values, url: string): string | undefined {
  const matches = ({ type, path: prefix }: (typeof paths)[number]) =>
    type === 'Exact' ? url === prefix : url === prefix || url.startsWith(`${prefix}/`)
  return paths.filter(matches).sort((a, b) => b.path.length - a.path.length)[0]?.role
}

/** Returns the role to which the Caddyfile routes a URL. The first matching block wins. */
function caddyRole(caddyfile: string, url: string): string | undefined {
  const named = new Map(
    [...caddyfile.matchAll(/^\t(@\w+) path (.*)$/gm)].map(([, name, list]) => [name, list]),
  )
  const blocks = [
    ...caddyfile.matchAll(
      /^\thandle ?(\S*) \{\n\t\t(?:reverse_proxy (\w+):8787 \{|respond 404)$/gm,
    ),
  ]
  const matches = (pattern: string) =>
    pattern.endsWith('*') ? url.startsWith(pattern.slice(0, -1)) : url === pattern
  const block = blocks.find(([, matcher = '']) =>
    (named.get(matcher) ?? (matcher || '*')).split(' ').some(matches),
  )
  return block?.[2]
}

const values: Values = parse(await read('chart/values.yaml'))
const caddyfile = await read('Caddyfile')
const database = await createTestDatabase()
const env = {
  DATABASE_URL: database.url,
  KAFKA_BROKERS: '',
  TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
}
const servers = new Map<string, ServerProcess>()
const start = async (role: string) =>
  servers.set(role, await startServerProcess(['serve', '--roles', role], env))
beforeAll(() => Promise.all(publicRoles.map(start)))
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.end('SIGTERM')))
  await database.drop()
})

async function addressesOf(role: string): Promise<string[]> {
  const response = await fetch(`${servers.get(role)?.baseUrl}/openapi.json`)
  const { paths }: Description = JSON.parse(await response.text())
  const own = Object.entries(paths).filter(([, methods]) =>
    Object.values(methods).some(({ tags }) => !tags.includes('Operations')),
  )
  const described = own.map(([template]) => template.replace(/\{\w+\}/g, 'x'))
  return [...described, ...(role === 'api' || role === 'gate' ? pages[role] : [])]
}

it.each(publicRoles)('the ingress and Caddy route all addresses of the role %s', async (role) => {
  const addresses = await addressesOf(role)
  expect(addresses.length).toBeGreaterThan(3)
  const right = addresses.map((url) => [url, role])
  expect(addresses.map((url) => [url, ingressRole(values, url)])).toEqual(right)
  expect(addresses.map((url) => [url, caddyRole(caddyfile, url)])).toEqual(right)
})

it.each(Object.entries(pages).flatMap(([role, urls]) => urls.map((url) => [role, url] as const)))(
  'the role %s serves the page %s',
  async (role, url) => {
    expect((await fetch(`${servers.get(role)?.baseUrl}${url}`)).status).toBe(200)
  },
)

it.each(['/metrics', '/livez', '/readyz'])('the ingress and Caddy do not expose %s', (url) => {
  expect(ingressRole(values, url)).toBeUndefined()
  expect(caddyRole(caddyfile, url)).toBeUndefined()
})

it('the chart scales only by lags that are measured', async () => {
  const metrics = await (await fetch(`${servers.get('api')?.baseUrl}/metrics`)).text()
  const measured = new Set(
    [...metrics.matchAll(/^tidegate_consumer_lag_records\{group="(\w+)"/gm)].map(
      ([, group]) => group,
    ),
  )
  const groups = Object.values(values.roles).flatMap(({ autoscaling: { lag } }) =>
    lag ? [lag.group] : [],
  )
  expect(groups).toHaveLength(3)
  expect(groups.filter((group) => !measured.has(group))).toEqual([])
})
