import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { measuresOf } from '../../bench/visitors/measures.ts'
import { browsersOf, replay, visitsOf } from '../../bench/visitors/replay.ts'
import { visitorsPart } from '../../bench/visitors/report.ts'
import results from '../../bench/visitors/results.json' with { type: 'json' }
import { twinsOf } from '../../bench/visitors/scenarios.ts'

test('docs/detection.md says of visitors what was measured', async () => {
  const page = await readFile(path.resolve(import.meta.dirname, '../../docs/detection.md'), 'utf8')
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
