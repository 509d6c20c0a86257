import { describe, expect, it } from 'vitest'
import { shareOf } from '../../../../services/cli/rescore/mark-counter.ts'
import {
  createRehearsal,
  type FactRow,
  type Rehearsal,
} from '../../../../services/cli/rescore/rehearse.ts'
import { type ScoringModel, standardModel } from '../../../../services/scoring/model/model.ts'
import { factRow, modelWith, randomFrom, randomRows } from './session-rows.ts'

function rehearse(rows: Iterable<FactRow>, candidate: ScoringModel): Rehearsal {
  const modelOf = (id: string) => (id === 'tidegate-6' ? standardModel : undefined)
  const rehearsal = createRehearsal({ candidate, modelOf })
  for (const row of rows) rehearsal.add(row)
  return rehearsal.result()
}

/** Computes the score step by step, as docs/guide/scoring.md describes it. */
function plainScore(model: ScoringModel, slugs: string[], hasSnapshot: boolean): number {
  const fired = slugs.flatMap((slug) => model.signals[slug] ?? [])
  const risks = fired.filter(({ role }) => role === 'risk')
  const isInput = (signal: (typeof fired)[number]) =>
    signal.strength === 'moderate' && signal.category === 'behavioral'
  let [plain, weak, input, trust, definitive] = [1, 1, 1, 0, 0]
  let floor = hasSnapshot ? 0 : model.floors.no_snapshot
  for (const signal of fired) {
    const doubt = 1 - signal.points / 100
    if (signal.role === 'trust') trust += signal.points
    else if (signal.role === 'context') continue
    else if (signal.strength === 'definitive') definitive = Math.max(definitive, signal.points)
    else if (signal.strength === 'weak') weak *= doubt
    else if (isInput(signal)) input *= doubt
    else plain *= doubt
    floor = Math.max(floor, signal.floor ?? 0)
  }
  const weakPart = Math.min(100 * (1 - weak), model.caps.weak) / 100
  const inputPart = Math.min(100 * (1 - input), model.caps.habits) / 100
  const sum =
    100 * (1 - plain * (1 - weakPart) * (1 - inputPart)) - Math.min(trust, model.caps.trust)
  const strong = new Set(
    risks.filter((signal) => signal.strength === 'strong').map((signal) => signal.channel),
  )
  const others = risks.filter(
    (signal) =>
      signal.strength === 'moderate' && ['environment', 'behavioral'].includes(signal.category),
  )
  const further = new Set(
    others.map((signal) => signal.channel).filter((channel) => !strong.has(channel)),
  )
  const isConfirmed = strong.size >= 2 || (strong.size === 1 && further.size >= 2)
  return Math.round(Math.max(isConfirmed ? sum : Math.min(sum, 69), definitive, floor, 0))
}

const verdictOf = (score: number) => (score >= 70 ? 'bot' : score >= 40 ? 'inconclusive' : 'human')

describe('a rehearsal', () => {
  it('agrees with an independent implementation of the documented scoring', () => {
    const candidate = modelWith({ developer_tools_detected: 70 })
    const rows = [...randomRows(100_000, randomFrom(36))]
    const moves: Record<string, number> = {}
    const signals: Record<string, number> = {}
    for (const row of rows) {
      const slugs = (row.signals ?? '').split(' ')
      const after = verdictOf(plainScore(candidate, slugs, row.has_snapshot === true))
      const move = `${row.verdict} ${after}`
      moves[move] = (moves[move] ?? 0) + 1
      if (after !== row.verdict) for (const slug of slugs) signals[slug] = (signals[slug] ?? 0) + 1
    }
    const result = rehearse(rows, candidate)
    const all = Object.entries(result.moves).flatMap(([before, by]) =>
      Object.entries(by).flatMap(([after, count]) =>
        count > 0 ? [[`${before} ${after}`, count]] : [],
      ),
    )
    expect(Object.fromEntries(all)).toEqual(moves)
    expect(result.moved).toBeGreaterThan(100)
    expect(result.check).toMatchObject({ followed: 100_000, differed: 0, unknown_models: {} })
    for (const { value, moved } of result.by.signal.top)
      expect(moved).toBe(signals[String(value)] ?? 0)
    expect(result.by.signal.top[0]).toMatchObject({
      value: 'developer_tools_detected',
      moved: result.moved,
    })
  }, 60_000)

  it('counts each session once per field, in the top values or the rest', () => {
    const rows = Array.from({ length: 50 }, (_, i) => factRow({ page_host: `h${i}.example` }))
    const { page_host: hosts, country } = rehearse(rows, standardModel).by
    expect(hosts.top).toHaveLength(20)
    expect(hosts.rest).toMatchObject({ sessions: 30, moved: 0 })
    expect(country.top).toMatchObject([{ value: 'DE', sessions: 50 }])
  })

  it('lists the same hundred sessions in any order, and none whose score is unchanged', () => {
    const candidate = modelWith({ developer_tools_detected: 70, engine_mismatch: 10 })
    const rows = [...randomRows(20_000, randomFrom(1))]
    const changed = rehearse(rows, candidate).most_changed
    expect(changed).toHaveLength(100)
    expect(rehearse(rows.toReversed(), candidate).most_changed).toEqual(changed)
    expect(rehearse(rows, standardModel).most_changed).toEqual([])
  })

  it('leaves out expired decisions, and counts signals that the model lacks', () => {
    const rows = [
      factRow({ signals: null, has_snapshot: null, model: null }),
      factRow({ signals: 'engine_mismatch of_an_older_release' }),
    ]
    const { ended, sessions, unknown_signals } = rehearse(rows, standardModel)
    expect({ ended, sessions }).toEqual({ ended: 1, sessions: 1 })
    expect(unknown_signals).toEqual({ sessions: 1, signals: { of_an_older_release: 1 } })
  })

  it('reports scores that do not follow from their signals, and unknown models', () => {
    const rows = [
      factRow(),
      factRow({ session_id: 'sid_other', risk_score: 3 }),
      factRow({ model: 'mdl_0123456789ab' }),
    ]
    expect(rehearse(rows, standardModel).check).toEqual({
      followed: 1,
      differed: 1,
      examples: ['sid_other'],
      unknown_models: { mdl_0123456789ab: 1 },
    })
  })
})

describe('marks', () => {
  const times = (count: number, row: Partial<FactRow>) =>
    Array.from({ length: count }, () => factRow(row))
  const caught = { signals: 'webdriver_detected' }

  it('give precision and recall of `bot`, without declared bots and fraud', () => {
    const rows = [
      ...times(20, { ...caught, mark: 'bot' }),
      ...times(20, { mark: 'bot', signals: 'cdp_driven_input engine_mismatch' }),
      ...times(10, { mark: 'bot' }),
      ...times(30, { mark: 'human' }),
      ...times(5, { mark: 'legitimate', ...caught }),
      ...times(4, { mark: 'legitimate', signals: 'declared_bot_user_agent' }),
      ...times(3, { mark: 'fraud', ...caught }),
    ]
    const { marks } = rehearse(rows, modelWith({ cdp_driven_input: 1, engine_mismatch: 1 }))
    expect(marks).toMatchObject({ positives: 50, negatives: 35, declared_bots: 4 })
    expect(marks.before).toEqual({ precision: shareOf(40, 45), recall: shareOf(40, 50) })
    expect(marks.after).toEqual({ precision: shareOf(20, 25), recall: shareOf(20, 50) })
    expect(marks.fraud.bot.bot).toBe(3)
  })

  it('give no quality with fewer than thirty positives or negatives', () => {
    const rows = [...times(100, { ...caught, mark: 'bot' }), ...times(29, { mark: 'human' })]
    expect(rehearse(rows, standardModel).marks).toMatchObject({ before: null, after: null })
  })

  it('give Wilson score intervals', () => {
    // Expected values from R's prop.test(8, 10, correct = FALSE).
    expect(shareOf(8, 10)).toMatchObject({
      low: expect.closeTo(0.4902, 4),
      high: expect.closeTo(0.9433, 4),
    })
    expect(shareOf(30, 30)).toMatchObject({ value: 1, low: expect.closeTo(0.8865, 4), high: 1 })
    expect(shareOf(0, 0)).toBeNull()
  })
})
