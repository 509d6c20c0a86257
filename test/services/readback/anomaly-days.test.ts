import { expect, test } from 'vitest'
import { type Attack, anomaliesOf, isAttacked, simulateDay, until } from './simulated-days.ts'

const minute = 60_000
const firstSeed = 2_026_120_100
const seeds = (length: number) => Array.from({ length }, (_, i) => firstSeed + i)
const sizes = [2000, 20_000, 100_000]

test('quiet days have no anomalies, but for one of a crawler in twenty days', () => {
  const days = sizes.flatMap((sessions) => seeds(40).map((seed) => ({ seed, sessions })))
  const anomalies = days.flatMap((day) => anomaliesOf(simulateDay(day)))
  console.log(`${anomalies.length} anomalies on ${days.length} quiet days, seeds from ${firstSeed}`)
  expect(anomalies.length / days.length).toBeLessThan(0.1)
  const fields = anomalies.flatMap(({ values }) => values.map(({ field }) => field))
  expect(fields.filter((field) => field !== 'agent_provider').length).toBeLessThan(3)
})

const attacks = sizes.flatMap((sessions) =>
  [10, 30, 60].map((minutes) => ({ sessions, minutes, misses: sessions > 20_000 ? 1 : 0 })),
)

test.each(attacks)(
  '250 sessions in $minutes minutes of a day of $sessions are one anomaly with its times',
  ({ sessions, minutes, misses }) => {
    const missed = seeds(20).filter((seed, i) => {
      const attack: Attack = { start: until - (70 + ((i * 389) % 1300)) * minute, minutes }
      const end = attack.start + minutes * minute
      const found = anomaliesOf(simulateDay({ seed, sessions, attack }), attack).filter(
        ({ values }) => values.some(isAttacked),
      )
      expect(found.length, `seed ${seed}`).toBeLessThan(2)
      for (const { startedAt, endedAt } of found) {
        expect(Math.abs(startedAt - attack.start), `start, seed ${seed}`).toBeLessThan(31 * minute)
        expect(Math.abs(endedAt - end), `end, seed ${seed}`).toBeLessThan(31 * minute)
      }
      return found.length === 0
    })
    expect(missed.length, `missed with seeds ${missed}`).toBeLessThanOrEqual(misses)
  },
)
