import fc from 'fast-check'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createCodec, type DomainEvent } from '../../../../infra/event-store/codec.ts'
import { derivedId } from '../../../../infra/ids.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import { partitionOfKey } from '../../../../infra/log/partition.ts'
import type { LogRecord } from '../../../../infra/log/port.ts'
import { createRandom } from '../../../../infra/random.ts'
import type { Rehearsal } from '../../../../services/cli/rescore/rehearse.ts'
import { mayHave, partsOf, rehearseObservations } from '../../../../services/cli/rescore/replay.ts'
import type { RehearsedSessions } from '../../../../services/cli/rescore/rows.ts'
import { modelId } from '../../../../services/scoring/model/model.ts'
import { nothingLearned } from '../../../../services/scoring/session/answers.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { type Slug, signalCatalogue } from '../../../../services/scoring/signals/catalogue.ts'
import { runScoring } from '../../../../services/scoring/worker.ts'
import { createMemoryDataKeys } from '../../../support/memory-data-keys.ts'
import { createMemoryLog } from '../../../support/memory-log.ts'
import { noSkips } from '../../../support/no-skips.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/postgres.ts'
import { modelWith } from './given-rows.ts'
import { type GivenSession, givenSessions, key, organizationId, startedAt } from './given-sessions.ts'

const clock = () => startedAt + 60_000
const keys = createMemoryDataKeys()
const codec = createCodec(undefined, { sealing: { keys, random: createRandom() } })
const log = createMemoryLog({ now: clock })
const sessions = givenSessions(300, 'replay')
const own = modelWith({ uniform_typing: 80 })
let database: TestDatabase

function recordOf(event: DomainEvent) {
  const { data } = event
  const eventId = 'event_id' in data ? data.event_id : derivedId('opn', JSON.stringify(data))
  const meta = { eventId, time: clock(), organizationId, environment: 'live' as const }
  return codec.toCausedRecord(event, meta, { actor: { type: 'operator', id: 'test' }, request_id: null })
}

async function given(...events: (SessionEvent | DomainEvent)[]): Promise<void> {
  keys.ensure(events.flatMap(({ data }) => ('session_id' in data ? data.session_id : [])))
  await log.append(events.map(recordOf))
}

// Live scoring has decided about all sessions, the last of them by a model that is the organization's own meanwhile.
beforeAll(async () => {
  database = await createTestDatabase()
  const modelsAt = async () => () => ({ model: own, until: Infinity })
  await score(sessions.slice(0, 250))
  await given({
    type: 'ScoringModelChanged',
    data: {
      ...{ event_id: 'evt_model', organization_id: organizationId, reason: 'x', changed_at: 0 },
      ...{ model_id: modelId(own), document: JSON.stringify(own), effective_at: clock() - 1 },
    },
  })
  await score(sessions.slice(250), { modelsAt })
}, 60_000)
afterAll(() => database.drop())

async function score(some: GivenSession[], { modelsAt }: Pick<Scoring, 'modelsAt'> = {}): Promise<void> {
  const at = modelsAt ? clock : () => clock() - 1000
  const worker = await runScoring({
    ...{ log, pool: database.pool, codec, dataKeys: createMemoryDataKeys(), clock: at, modelsAt },
    ...{ learned: nothingLearned, simulationKey: key, network: noNetwork, skips: noSkips },
    ...{ applied: { waitFor: async () => {} }, logger: pino({ level: 'silent' }) },
  })
  await given(...some.flatMap(({ events }) => events))
  await log.settled()
  await worker.stop()
}
type Scoring = Parameters<typeof runScoring>[0]

const all = { since: 0, until: Infinity }

function rehearse(
  those: RehearsedSessions = all,
  { from = log, mostTogether = 50_000 } = {},
): Promise<Rehearsal> {
  return rehearseObservations({ log: from, codec, skips: noSkips }, those, { mostTogether })
}

/** The log as if some records had never been, or are no longer there. */
async function without(isGone: (record: LogRecord) => boolean) {
  const copy = createMemoryLog({ now: clock })
  await copy.append(log.records.filter((record) => !isGone(record)))
  return copy
}

const typeOf = ({ headers }: LogRecord) => headers.event_type

/** As if the rule of a signal were another one in the release that rehearses. */
function changeRule(slug: Slug, fires: boolean) {
  const signal = signalCatalogue.find((one) => one.slug === slug)
  if (!signal) throw new Error(slug)
  return vi.spyOn(signal, 'fires').mockReturnValue(fires)
}

describe('a rehearsal of the release that decided', () => {
  it('moves nothing, by whichever models it was decided, in one part or in many', async () => {
    const rehearsal = await rehearse()
    expect(rehearsal).toMatchObject({
      ...{ sessions: 300, moved: 0, most_changed: [] },
      check: { followed: 300, differed: 0, unknown_models: {} },
      observations: { fires: [], not_judged: { erased: 0, expired: 0, incomplete: 0 } },
    })
    expect(Object.values(rehearsal.moves).map((after) => Object.values(after).some(Boolean))).toEqual([
      ...[true, true, true],
    ])
    expect(await rehearse(all, { mostTogether: 40 })).toEqual(rehearsal)
  })

  it('is of the sessions of the time, the organization and the environment', async () => {
    const found = async (some: Partial<RehearsedSessions>) => (await rehearse({ ...all, ...some })).sessions
    expect(await found({ since: clock() })).toBe(50)
    expect(await found({ until: clock() })).toBe(250)
    expect(await found({ organizationId })).toBe(300)
    expect(await found({ organizationId: 'org_another0000000000000000000' })).toBe(0)
    expect(await found({ environment: 'test' })).toBe(0)
  })
})

describe('a changed rule', () => {
  it('about the session itself is tried', async () => {
    const rule = changeRule('app_unattested', false)
    const { moved, moves, observations, by } = await rehearse().finally(() => rule.mockRestore())
    const apps = sessions.filter(({ plan }) => plan.client !== 'web').length
    expect(observations?.fires).toEqual([{ signal: 'app_unattested', newly: 0, no_longer: apps }])
    expect(moved).toBeGreaterThan(20)
    expect(moves.inconclusive.human).toBe(moved)
    expect(by.page_host.top.find(({ moved: some }) => some > 0)).toBeDefined()
  })

  it('about answers that were learned is not, and the report says of how many sessions', async () => {
    const rule = changeRule('engine_unproven', false)
    const { moved, observations } = await rehearse().finally(() => rule.mockRestore())
    expect({ moved, fires: observations?.fires }).toEqual({ moved: 0, fires: [] })
    const { sessions: unjudged, signals } = observations?.as_fired.learned_answers ?? {
      sessions: 0,
      signals: [],
    }
    const unproven = signals.find(({ signal }) => signal === 'engine_unproven')
    const web = sessions.filter(({ plan }) => plan.client === 'web')
    expect(unproven?.fired).toBe(web.filter(({ plan }) => plan.index % 5 === 0).length)
    expect(unproven?.sessions).toBeGreaterThan(0)
    expect(unjudged).toBeGreaterThanOrEqual(unproven?.sessions ?? 0)
  })
})

describe('not judged is', () => {
  const gone = sessions.slice(0, 4).map(({ id }) => id)
  const notJudged = async (from: Awaited<ReturnType<typeof without>>) => {
    const { sessions: judged, moved, observations } = await rehearse(all, { from })
    return { judged, moved, ...observations?.not_judged }
  }

  it('what has observations that are no longer there, also where some are', async () => {
    const expired = await without((record) => record.key === gone[0] && typeOf(record) !== 'SessionScored')
    expect(await notJudged(expired)).toMatchObject({ judged: 299, moved: 0, expired: 1 })
    const partly = await without(
      (record) =>
        gone.includes(record.key) && ['SessionOpened', 'DocumentOpened'].includes(typeOf(record) ?? ''),
    )
    expect(await notJudged(partly)).toMatchObject({ judged: 296, moved: 0, expired: 4 })
  })

  it('what was decided when scoring had forgotten how it began', async () => {
    const one = sessions[2]
    const later = await without(() => false)
    // As if the log had kept more of it than scoring knew.
    const opening = log.records.find((record) => record.key === one?.id && typeOf(record) === 'SessionOpened')
    const earlier = one?.events[0]?.data
    if (!opening || !earlier || !('opened_at' in earlier)) throw new Error('no opening')
    const moved = recordOf({
      type: 'SessionOpened',
      data: { ...earlier, opened_at: startedAt - 5 },
    } as SessionEvent)
    const at = later.records.findIndex((record) => record.value.equals(opening.value))
    later.records.splice(at, 1, { ...opening, ...moved })
    expect(await notJudged(later)).toMatchObject({ judged: 299, incomplete: 1 })
  })

  it('what the log has no reason for', async () => {
    const unasked = await without((record) => record.key === gone[1] && typeOf(record) === 'ResultRequested')
    expect(await notJudged(unasked)).toMatchObject({ judged: 299, incomplete: 1 })
  })

  it('what was erased', async () => {
    keys.erase(...gone)
    expect(await notJudged(log)).toMatchObject({ judged: 296, moved: 0, erased: 4, expired: 0 })
  })
})

it('goes over the log in parts that have each key once, and each of few partitions', () => {
  const numbers = fc.record({
    needed: fc.integer({ min: 0, max: 60 }),
    partitions: fc.integer({ min: 1, max: 24 }),
  })
  fc.assert(
    fc.property(numbers, fc.string(), ({ needed, partitions }, name) => {
      const parts = partsOf(needed, partitions)
      expect(parts.length).toBeGreaterThanOrEqual(needed)
      const partition = partitionOfKey(name, partitions)
      const having = parts.filter(({ number, of }) => partitionOfKey(name, of) === number)
      expect(having).toHaveLength(1)
      for (const part of having) expect(mayHave(part, partition, partitions)).toBe(true)
      const read = parts.map((part) =>
        Array.from({ length: partitions }, (_, i) => i).filter((i) => mayHave(part, i, partitions)),
      )
      expect(read.flat()).toHaveLength(Math.max(parts.length, partitions))
    }),
  )
})
