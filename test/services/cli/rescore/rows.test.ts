import { expect, test } from 'vitest'
import { createCodec } from '../../../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { sessionsProjection } from '../../../../projections/sessions/projection.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import type { FactRow } from '../../../../services/cli/rescore/rehearse.ts'
import { factRows, type RehearsalSelection } from '../../../../services/cli/rescore/rows.ts'
import { useReadModel } from '../../../projections/read-model.ts'
import { testCause } from '../../../support/projections.ts'
import { metaOf, sessionScored } from '../../../support/session-scored.ts'

const codec = createCodec()
let offset = 0
const model = await useReadModel(sessionsProjection, (event: DomainEvent) => {
  if (event.type !== 'SessionScored') throw new Error('not a decision')
  const position = { topic: 'tidegate.sessions.v1', partition: 0, offset: offset++ } as const
  return { ...event, meta: metaOf(event.data), value: codec.encode(event, testCause), position }
})

const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, '0')}`
const noon = Date.UTC(2026, 10, 23, 12)

async function applyDecisions(...decisions: Partial<SessionScored>[]): Promise<void> {
  const events = decisions.map((decision, n): DomainEvent => {
    const ids = { session_id: id('sid', n), event_id: id('evt', n), evaluated_at: noon }
    return { type: 'SessionScored', data: sessionScored({ ...ids, ...decision }) }
  })
  await model.given(...events)
}

async function read(selection: Partial<RehearsalSelection> = {}): Promise<FactRow[]> {
  const rows: FactRow[] = []
  for await (const batch of factRows(model.database.pool, {
    since: 0,
    until: noon + 1,
    ...selection,
  }))
    rows.push(...batch)
  return rows
}

test('a row has the inputs of the score and the fields to compare by', async () => {
  const signal = {
    category: 'environment',
    channel: 'console',
    role: 'risk',
    strength: 'strong',
    signal_score: 62,
  }
  const fired = ['cdp_driven_input', 'engine_mismatch'].map((slug) => ({ ...signal, signal: slug }))
  await applyDecisions(
    { model: 'mdl_0123456789ab', signals_fired: fired, has_snapshot: true },
    { model: 'tidegate-4' },
  )
  const [row, older] = await read()
  expect(row).toMatchObject({
    session_id: id('sid', 0),
    evaluated_at: noon,
    signals: 'cdp_driven_input engine_mismatch',
    model: 'mdl_0123456789ab',
    has_snapshot: true,
    mark: null,
  })
  expect(older?.model).toBe('tidegate-4')
})

test('reads the sessions of the time range, the organization and the environment', async () => {
  const [first, second] = [id('org', 1), id('org', 2)]
  await applyDecisions(
    { organization_id: first },
    { organization_id: first, environment: 'test' },
    { organization_id: second, evaluated_at: noon - 10 },
  )
  const sessionIds = async (selection: Partial<RehearsalSelection>) =>
    (await read(selection)).map(({ session_id }) => session_id).sort()
  expect(await sessionIds({ since: noon })).toEqual([id('sid', 0), id('sid', 1)])
  expect(await sessionIds({ until: noon })).toEqual([id('sid', 2)])
  expect(await sessionIds({ organizationId: first, environment: 'live' })).toEqual([id('sid', 0)])
  expect(await sessionIds({ excludedOrganizations: [first] })).toEqual([id('sid', 2)])
})

test('ends the transaction when the reader stops early', async () => {
  await applyDecisions({}, {})
  for await (const _ of factRows(model.database.pool, { since: 0, until: noon + 1 })) break
  const open = `select 1 from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`
  await expect.poll(async () => (await model.database.pool.query(open)).rows).toEqual([])
})
