import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import { asId, timeOrderedId } from '../../infra/ids.ts'
import { createLogger } from '../../infra/telemetry.ts'
import { openLog } from '../../services/server/dependencies.ts'
import { type Owner, operator } from '../support/cluster.ts'
import { visitAs } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { rebuildIsEqual } from '../support/roles.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'

const day = 24 * 60 * 60 * 1000
const patient = { timeoutMs: 30_000, intervalMs: 200 }

describe('a server that lets sessions and visitors end', () => {
  let database: TestDatabase
  let settings: Record<string, string>
  let server: ServerProcess
  let owner: Owner

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    settings = {
      TIDEGATE_MASTER_KEYS: randomBytes(32).toString('base64'),
      KAFKA_BROKERS: '',
      DATABASE_URL: database.url,
    }
    server = await startServerProcess(['serve'], settings)
    owner = await operator(settings).organization()
  }, 60_000)
  afterAll(async () => {
    await server?.end('SIGTERM')
    await database?.drop()
  })

  async function idsAt(path: string): Promise<string[]> {
    const headers = { authorization: `Bearer ${owner.secret.key}` }
    const answer = await fetch(`${server.baseUrl}${path}?limit=100`, { headers })
    const { data }: { data: { id: string }[] } = JSON.parse(await answer.text())
    return data.map(({ id }) => id).sort()
  }

  /** Decisions of five days ago, as a server then wrote them. */
  async function writeOld(count: number): Promise<void> {
    const logger = createLogger('silent')
    const config = readConfig(settings)
    const log = await openLog({ config, pool: database.pool, url: database.url, logger })
    const codec = createCodec()
    const records = Array.from({ length: count }, (_, n) => {
      const at = Date.now() - 5 * day + n
      const [session_id, event_id] = [
        timeOrderedId('sid', at, randomBytes),
        timeOrderedId('evt', at, randomBytes),
      ]
      const visitor = visitorLink({
        id: timeOrderedId('vid', at, randomBytes),
        identified_at: at,
        continuity_id: `old ${n}`,
      })
      const about = {
        session_id,
        event_id,
        visitor,
        organization_id: asId('org', owner.organizationId),
      }
      const data = sessionScored({
        ...about,
        created_at: at,
        evaluated_at: at,
        is_provisional: false,
      })
      return codec.toRecord({ type: 'SessionScored', data }, metaOf(data))
    })
    await log.append(records)
    await log.close()
  }

  it('deletes what is older than the settings say, and nothing else', async () => {
    for (const device of [1, 2, 3]) await visitAs(device, { baseUrl: server.baseUrl, owner })
    await eventually(async () => expect(await idsAt('/v1/sessions')).toHaveLength(3), patient)
    const [sessions, visitors] = [await idsAt('/v1/sessions'), await idsAt('/v1/fingerprints')]
    await writeOld(20)
    await eventually(async () => expect(await idsAt('/v1/sessions')).toHaveLength(23), patient)
    await server.end('SIGTERM')

    Object.assign(settings, { SESSION_RETENTION_DAYS: '2', VISITOR_RETENTION_DAYS: '3' })
    server = await startServerProcess(['serve'], settings)
    await eventually(async () => expect(await idsAt('/v1/sessions')).toEqual(sessions), patient)
    await eventually(async () => expect(await idsAt('/v1/fingerprints')).toEqual(visitors), patient)
    const shown = await operator(settings).operate<{ ended: object }>('org', 'policy', owner.slug)
    expect(shown.ended).toMatchObject({
      sessions_before: expect.any(Number),
      webhooks_before: null,
    })
  }, 60_000)

  it.each(['policies', 'sessions', 'webhooks'])(
    'a rebuild of %s is equal',
    (projection) => rebuildIsEqual(settings, projection),
    60_000,
  )

  it('so is one of scoring, which has none of them either', async () => {
    const report = await operator(settings).cli(['rebuild', 'scoring', '--json'])
    expect(JSON.parse(report.stdout)).toMatchObject({ visitors: 3, switched: true })
  }, 60_000)
})
