import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { codeBlock } from '../support/code-block.ts'
import { pythonWithDuckDb } from '../support/duckdb.ts'
import { eventually } from '../support/eventually.ts'
import { writeMmdb } from '../support/mmdb.ts'
import { needs } from '../support/needs.ts'
import { pythonWithKafka } from '../support/python-kafka.ts'
import { startTraffic } from '../support/session-traffic.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const { describe, it } = needs('kafka', 'python-kafka', 'python-duckdb', 'kcat')
const run = promisify(execFile)
const sessions = 24
const patient = { timeoutMs: 90_000, intervalMs: 500 }
const credentials = 'reader:pass:word'

interface Group {
  start: string
  values: { asn: string | null; verdict: string }
  sessions: number
}

// Somebody who has no more than the page does what it says.
describe('docs/guide/analysts.md on a live installation', () => {
  const folder = temporaryFolder('analysts')
  let cluster: Cluster
  let env: NodeJS.ProcessEnv

  beforeAll(async () => {
    const asns = path.join(folder, 'asn.mmdb')
    await writeMmdb(asns, 'GeoLite2-ASN', {
      '0.0.0.0/1': { autonomous_system_number: 64500, autonomous_system_organization: 'One' },
      '128.0.0.0/1': { autonomous_system_number: 64501, autonomous_system_organization: 'Two' },
    })
    const port = String(await freePort())
    const settings = { SCHEMAS_PORT: port, SCHEMAS_AUTH: credentials }
    cluster = await startCluster({
      log: 'kafka',
      env: { ...settings, TRUSTED_PROXIES: '127.0.0.0/8', ASN_MMDB: asns },
    })
    await cluster.operate('org', 'policy', cluster.owner.slug, '--facts', 'on')
    env = {
      ...process.env,
      KAFKA_BROKERS: cluster.settings.KAFKA_BROKERS,
      SCHEMAS_URL: `http://127.0.0.1:${port}`,
      KAFKA_TOPIC_PREFIX: cluster.settings.KAFKA_TOPIC_PREFIX,
      SCHEMAS_AUTH: credentials,
    }
    const traffic = startTraffic({
      baseUrl: () => cluster.baseUrl,
      publishableKey: cluster.owner.publishable.key,
      seed: 'analysts',
      sessions,
      atOnce: 4,
      address: (index) => (index % 3 === 0 ? '8.8.8.10' : '203.0.113.10'),
    })
    await traffic.done
    expect(traffic.givenUp).toEqual([])
  }, 240_000)
  afterAll(() => cluster?.stop())

  async function countsOfApi(): Promise<string[]> {
    const url = '/v1/sessions/aggregates?group_by=asn,verdict&interval=hour&top=100'
    const counts = await cluster.read<{ sessions: number; groups: Group[] }>(url)
    expect(counts.sessions).toBe(sessions)
    return counts.groups
      .map(({ start, values, sessions: n }) =>
        [values.asn ?? 'None', start.slice(0, 13), values.verdict, n].join(' '),
      )
      .sort()
  }

  const lines = (text: string) => text.trim().split('\n').sort()

  it('Python with a schema registry client counts as the API does', async () => {
    const python = await pythonWithKafka()
    const script = await codeBlock('guide/analysts.md', 'analysts.py')
    const ofApi = await countsOfApi()
    expect(new Set(ofApi.map((line) => line.split(' ')[0])).size).toBe(2)
    await eventually(async () => {
      const { stdout } = await run(python, ['-c', script], { env, timeout: 60_000 })
      expect(lines(stdout)).toEqual(await countsOfApi())
    }, patient)
  }, 240_000)

  it('DuckDB counts an export as the API does', async () => {
    const file = path.join(folder, 'sessions.parquet')
    await cluster.cli(['export', 'sessions', '--since', '7d', '--out', file])
    const script = await codeBlock('guide/analysts.md', 'analysts-duckdb.py')
    const { stdout } = await run(await pythonWithDuckDb(), ['-c', script], {
      cwd: folder,
      timeout: 60_000,
    })
    expect(lines(stdout)).toEqual(await countsOfApi())
  }, 240_000)

  it('kcat shows as many keys with a value as there are sessions', async () => {
    const script = await codeBlock('guide/analysts.md', 'analysts.sh')
    await eventually(async () => {
      const { stdout } = await run('sh', ['-c', script], { env, timeout: 60_000 })
      expect(Number(stdout)).toBe(sessions)
    }, patient)
  }, 240_000)
})
