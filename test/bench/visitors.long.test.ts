import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { journeysOf } from '../../bench/visitors/journeys.ts'
import { judge } from '../../bench/visitors/judged.ts'
import { measuresOf } from '../../bench/visitors/measures.ts'
import { populationOf } from '../../bench/visitors/population.ts'
import { browsersOf, replay, visitsOf } from '../../bench/visitors/replay.ts'
import { visitorsPart } from '../../bench/visitors/report.ts'
import results from '../../bench/visitors/results.json' with { type: 'json' }
import { twinsOf } from '../../bench/visitors/scenarios.ts'

test('docs/reports/detection.md says of visitors what was measured', async () => {
  const page = await readFile(
    path.resolve(import.meta.dirname, '../../docs/reports/detection.md'),
    'utf8',
  )
  expect(page).toContain(visitorsPart(results))
})

test('the replay keeps what it measured: few ids, nobody mixed', () => {
  const seed = 'visitors'
  const visits = visitsOf(browsersOf(seed, { desktop: 40 }), { seed, weeks: 6, loss: 1 })
  const visitors = replay(visits)
  const measured = measuresOf(
    visits.map(({ browser, at }, i) => ({ browser, at, visitor: visitors[i] ?? '' })),
  )
  expect(measured.idsPerBrowser).toBeLessThan(1.74)
  expect(measured.ownership).toBeGreaterThan(0.99)
})

test.each(twinsOf('visitors').filter(({ count }) => count === 10))(
  '$count twins in $place, $apart apart, are as many visitors once each came back',
  ({ count, firsts, returns }) => {
    const visitors = replay([...firsts, ...returns])
    expect(new Set(visitors).size).toBe(count)
  },
)

describe('a population', () => {
  const people = populationOf('people', 60)

  it('is the same for a seed, and another for another', () => {
    const visits = (seed: string) => journeysOf(populationOf(seed, 5), seed, { loss: 'realistic' })
    expect(visits('one')).toEqual(visits('one'))
    expect(visits('one')).not.toEqual(visits('other'))
  })

  it('keeps what it was given but where that is lost', () => {
    const kept = (loss: 'never' | 'always') => {
      const visits = journeysOf(people, 'people', { loss })
      const firsts = new Set(visits.map(({ browser }) => browser)).size
      return {
        without: visits.filter(({ presented }) => presented === null).length,
        firsts,
        all: visits.length,
      }
    }
    const [never, always] = [kept('never'), kept('always')]
    expect(never.without).toBe(never.firsts)
    expect(always.without).toBe(always.all)
  })
})

it('a visit is wrong where its visitor began with another device, and a look of two leads nobody', () => {
  const [phone] = populationOf('people', 5)
  if (!phone) throw new Error('nobody')
  const look = { snapshot: phone.snapshot, ip: '192.0.2.1' }
  const visit = (browser: number, at: number) => ({
    browser,
    look,
    at,
    presented: null,
    issued: `${at}`,
    sessionId: `${at}`,
  })
  const visits = [visit(0, 1), visit(1, 2), visit(1, 3)]
  const answers = ['a', 'a', 'b'].map((id, i) => ({ first: id, finally: id, wasWrong: i === 1 }))
  const judged = judge([{ ...phone, id: 1 }], { visits, answers })
  expect(judged).toEqual({
    devices: 1,
    visits: 2,
    wrong: 0.5,
    mixed: 0.5,
    idsPerBrowser: 2,
    bound: 2,
  })
})
