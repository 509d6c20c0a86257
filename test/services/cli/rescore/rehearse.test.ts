import { describe, expect, it } from 'vitest'
import { shareOf } from '../../../../services/cli/rescore/measure.ts'
import {
  createRehearsal,
  type FactRow,
  type Rehearsal,
} from '../../../../services/cli/rescore/rehearse.ts'
import { type ScoringModel, standardModel } from '../../../../services/scoring/model/model.ts'
import { factRow, modelWith, randomFrom, randomRows } from './given-rows.ts'

function rehearse(rows: Iterable<FactRow>, tried: ScoringModel): Rehearsal {
  const modelOf = (id: string) => (id === 'tidegate-6' ? standardModel : undefined)
  const rehearsal = createRehearsal({ tried, modelOf })
  for (const row of rows) rehearsal.add(row)
  return rehearsal.result()
}

/** As docs/guide/scoring.md says it, step by step. */
function plainScore(model: ScoringModel, slugs: string[], hasSnapshot: boolean): number {
  const fired = slugs.flatMap((slug) => model.signals[slug] ?? [])
  const risks = fired.filter(({ role }) => role === 'risk')
  const isInput = (one: (typeof fired)[number]) =>
    one.strength === 'moderate' && one.category === 'behavioral'
  let [plain, weak, input, trust, definitive] = [1, 1, 1, 0, 0]
  let floor = hasSnapshot ? 0 : model.floors.no_snapshot
  for (const one of fired) {
    const doubt = 1 - one.points / 100
    if (one.role === 'trust') trust += one.points
    else if (one.role === 'context') continue
    else if (one.strength === 'definitive') definitive = Math.max(definitive, one.points)
    else if (one.strength === 'weak') weak *= doubt
    else if (isInput(one)) input *= doubt
    else plain *= doubt
    floor = Math.max(floor, one.floor ?? 0)
  }
  const weakPart = Math.min(100 * (1 - weak), model.caps.weak) / 100
  const inputPart = Math.min(100 * (1 - input), model.caps.habits) / 100
  const sum =
    100 * (1 - plain * (1 - weakPart) * (1 - inputPart)) - Math.min(trust, model.caps.trust)
  const strong = new Set(risks.filter((one) => one.strength === 'strong').map((one) => one.channel))
  const others = risks.filter(
    (one) => one.strength === 'moderate' && ['environment', 'behavioral'].includes(one.category),
  )
  const further = new Set(
    others.map((one) => one.channel).filter((channel) => !strong.has(channel)),
  )
  const isConfirmed = strong.size >= 2 || (strong.size === 1 && further.size >= 2)
  return Math.round(Math.max(isConfirmed ? sum : Math.min(sum, 69), definitive, floor, 0))
}

const verdictOf = (score: number) => (score >= 70 ? 'bot' : score >= 40 ? 'inconclusive' : 'human')

describe('a rehearsal', () => {
  it('finds the moves that another implementation of the documented steps finds', () => {
    const tried = modelWith({ developer_tools_detected: 70 })
    const rows = [...randomRows(100_000, randomFrom(36))]
    const moves: Record<string, number> = {}
    const signals: Record<string, number> = {}
    for (const row of rows) {
      const slugs = (row.signals ?? '').split(' ')
      const after = verdictOf(plainScore(tried, slugs, row.has_snapshot === true))
      const move = `${row.verdict} ${after}`
      moves[move] = (moves[move] ?? 0) + 1
      if (after !== row.verdict) for (const slug of slugs) signals[slug] = (signals[slug] ?? 0) + 1
    }
    const found = rehearse(rows, tried)
    const all = Object.entries(found.moves).flatMap(([before, by]) =>
      Object.entries(by).flatMap(([after, count]) =>
        count > 0 ? [[`${before} ${after}`, count]] : [],
      ),
    )
    expect(Object.fromEntries(all)).toEqual(moves)
    expect(found.moved).toBeGreaterThan(100)
    expect(found.check).toMatchObject({ followed: 100_000, differed: 0, unknown_models: {} })
    for (const { value, moved } of found.by.signal.top)
      expect(moved).toBe(signals[String(value)] ?? 0)
    expect(found.by.signal.top[0]).toMatchObject({
      value: 'developer_tools_detected',
      moved: found.moved,
    })
  }, 60_000)

  it('counts each session once in a field, among the first values or the rest', () => {
    const rows = Array.from({ length: 50 }, (_, i) => factRow({ page_host: `h${i}.example` }))
    const { page_host: hosts, country } = rehearse(rows, standardModel).by
    expect(hosts.top).toHaveLength(20)
    expect(hosts.rest).toMatchObject({ sessions: 30, moved: 0 })
    expect(country.top).toMatchObject([{ value: 'DE', sessions: 50 }])
  })

  it('finds the same hundred sessions in any order, and no session whose score stays', () => {
    const tried = modelWith({ developer_tools_detected: 70, engine_mismatch: 10 })
    const rows = [...randomRows(20_000, randomFrom(1))]
    const changed = rehearse(rows, tried).most_changed
    expect(changed).toHaveLength(100)
    expect(rehearse(rows.toReversed(), tried).most_changed).toEqual(changed)
    expect(rehearse(rows, standardModel).most_changed).toEqual([])
  })

  it('leaves out what has ended, and counts signals that the model does not know', () => {
    const rows = [
      factRow({ signals: null, has_snapshot: null, model: null }),
      factRow({ signals: 'engine_mismatch of_an_older_release' }),
    ]
    const { ended, sessions, unknown_signals } = rehearse(rows, standardModel)
    expect({ ended, sessions }).toEqual({ ended: 1, sessions: 1 })
    expect(unknown_signals).toEqual({ sessions: 1, signals: { of_an_older_release: 1 } })
  })

  it('says which records do not follow from their signals, and which cannot be checked', () => {
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

  it('give precision and recall of bot, with declared bots and frauds apart', () => {
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

  it('are too few under thirty of either kind', () => {
    const rows = [...times(100, { ...caught, mark: 'bot' }), ...times(29, { mark: 'human' })]
    expect(rehearse(rows, standardModel).marks).toMatchObject({ before: null, after: null })
  })

  it('have the intervals that Wilson gives', () => {
    // As R's prop.test(8, 10, correct = FALSE) has them.
    expect(shareOf(8, 10)).toMatchObject({
      low: expect.closeTo(0.4902, 4),
      high: expect.closeTo(0.9433, 4),
    })
    expect(shareOf(30, 30)).toMatchObject({ value: 1, low: expect.closeTo(0.8865, 4), high: 1 })
    expect(shareOf(0, 0)).toBeNull()
  })
})
