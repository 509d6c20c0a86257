import { randomBytes } from 'node:crypto'
import { afterAll, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createAppliedOffsets } from '../../../infra/event-store/applied.ts'
import { type CommandDeps, createDecide, decidedEvent } from '../../../infra/event-store/decide.ts'
import { asId } from '../../../infra/ids.ts'
import { type EventLog, LogUnavailable } from '../../../infra/log/port.ts'
import { readTopic } from '../../../infra/log/read-topic.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { organizationsProjection } from '../../../projections/organizations/projection.ts'
import { createOrganization, organizationStream } from '../../../services/organizations/commands.ts'
import { openBothLogs } from '../../support/logs.ts'
import { ensureTopics, openProjectionWorld, silent, tester } from '../../support/projections.ts'

const keyring = createKeyring(randomBytes(32).toString('base64'))
const scheduler = { type: 'scheduler', id: 'key-end' } as const

for (const testLog of openBothLogs()) {
  const closing: (() => Promise<void>)[] = []

  /** Opens the resources of a process: a small pool, a log, and a listener for projections. */
  async function openProcess(): Promise<CommandDeps> {
    const pool = createPool({ url: world.database.url, max: 4 })
    const applied = await createAppliedOffsets({ url: world.database.url, pool, logger: silent })
    const parts = { pool, log: await testLog.open(), codec: world.codec, applied }
    // Racers wait for each other, which can take long on a busy machine.
    const decide = createDecide({ ...parts, timeoutMs: 30_000 })(tester)
    closing.push(async () => {
      await applied.close()
      await pool.end()
    })
    return { decide, keyring, clock: Date.now, random: randomBytes }
  }

  const world = await openProjectionWorld()
  const log = await testLog.open()
  await ensureTopics(log)
  await world.run(log, organizationsProjection)
  const processes = [await openProcess(), await openProcess()]
  afterAll(async () => {
    for (const close of closing) await close()
    await world.close()
    await testLog.cleanup()
  })

  test(`${testLog.name}: of 64 racers for one slug in two processes, one wins and 63 get a conflict`, async () => {
    const racers = Array.from({ length: 64 }, (_, i) => {
      const deps = processes[i % processes.length] ?? never()
      return createOrganization(deps, { name: `Racer ${i}`, slug: 'contested' })
    })
    const results = await Promise.allSettled(racers)
    const codes = results.map((one) => (one.status === 'fulfilled' ? 'won' : codeOf(one.reason)))
    expect(codes.sort()).toEqual([...Array(63).fill('request.conflict'), 'won'])
    const { rows } = await world.database.pool.query(
      `select * from read.organizations where slug = 'contested'`,
    )
    expect(rows).toHaveLength(1)
  })

  test(`${testLog.name}: every event of a decision names its actor and request`, async () => {
    const decideAs = await world.openDecide(log)
    const organizationId = asId('org', `org_${'9'.repeat(26)}`)
    const actor = { type: 'key', id: 'key_1' } as const
    const decideBy = { request: decideAs(actor, { id: 'req_1' }), clock: decideAs(scheduler) }
    const changed = async (by: keyof typeof decideBy, names: string[]) => {
      const about = { organizationId, environment: null, now: 1 }
      await decideBy[by]({
        ...organizationStream(organizationId),
        load: async () => names,
        decide: (state) =>
          state.map((name) => {
            const data = { organization_id: organizationId, name, renamed_at: 1 }
            return decidedEvent({ type: 'OrganizationRenamed', data }, { ...about, eventId: name })
          }),
      })
    }
    await changed('request', ['first', 'second'])
    await changed('clock', ['third'])
    const causes = new Map<string, unknown>()
    const reading = await readTopic({
      log,
      topic: organizationStream(organizationId).topic,
      handle(batches) {
        for (const record of batches.flatMap(({ records }) => records))
          if (record.key === organizationId) {
            const { meta, cause } = world.codec.fromRecord(record)
            causes.set(meta.eventId, cause)
          }
      },
    })
    await reading.reachedEnd
    await reading.stop()
    const requested = { actor, request_id: 'req_1' }
    expect(Object.fromEntries(causes)).toEqual({
      first: requested,
      second: requested,
      third: { actor: scheduler, request_id: null },
    })
  })

  test(`${testLog.name}: commands on different organizations don't exhaust the connections`, async () => {
    const creations = Array.from({ length: 24 }, (_, i) =>
      createOrganization(processes[i % 2] ?? never(), { name: 'Many', slug: `many-${i}` }),
    )
    expect(await Promise.all(creations)).toHaveLength(24)
  })

  test(`${testLog.name}: the next decision sees events of a process that died after its append`, async () => {
    const [deps = never()] = processes
    for (let i = 0; i < 5; i++) {
      const organization_id = asId('org', `org_${String(i).padStart(26, '0')}`)
      const data = { organization_id, name: 'Ghost', slug: `ghost-${i}`, created_at: i }
      const meta = {
        eventId: data.slug,
        time: i,
        organizationId: data.organization_id,
        environment: null,
      }
      await world.append(log, [{ event: { type: 'OrganizationCreated', data }, meta }])
      const second = createOrganization(deps, { name: 'Second', slug: `ghost-${i}` })
      expect(codeOf(await second.catch((error) => error))).toBe('request.conflict')
    }
  })

  test(`${testLog.name}: the next decision sees a write that lands after a 503`, async () => {
    const [deps = never(), other = never()] = processes
    const gate = Promise.withResolvers<void>()
    const doubtful: EventLog = {
      ...log,
      append: async (records) => {
        const settled = gate.promise.then(async () => void (await log.append(records)))
        throw new LogUnavailable('no answer', { settled })
      },
    }
    const applied = await world.openApplied()
    const { pool } = world.database
    const decide = createDecide({ pool, log: doubtful, codec: world.codec, applied })(tester)
    const first = createOrganization({ ...deps, decide }, { name: 'First', slug: 'doubtful' })
    await expect(first).rejects.toThrow(LogUnavailable)
    const second = createOrganization(other, { name: 'Second', slug: 'doubtful' })
    const refused = second.then(String, codeOf)
    gate.resolve()
    expect(await refused).toBe('request.conflict')
  })
}

function never(): never {
  throw new Error('no process')
}

function codeOf(error: unknown): string {
  return error instanceof ApiError ? error.code : String(error)
}
