import { describe, expect, test } from 'vitest'
import {
  bucketsOf,
  bucketTimeFormats,
  seriesOf,
  sumOf,
  ticksOf,
} from '../../../services/console/pages/sessions/buckets.ts'
import { intervalOf, type TimeSpan } from '../../../services/console/pages/shared/span.ts'
import type { SessionAggregates } from '../../../services/readback/schemas/aggregates.ts'

type CountedGroup = SessionAggregates['groups'][number]

const hour = 3_600_000
const day = 24 * hour
const timeSpan = (since: string, until: string): TimeSpan => ({
  since: Date.parse(since),
  until: Date.parse(until),
  last: undefined,
})
const group = (start: string, verdict: string, sessions: number): CountedGroup => ({
  start,
  kind: 'value',
  values: { verdict },
  sessions,
})
const bucketsIn = (span: TimeSpan, groups: CountedGroup[] = []) =>
  bucketsOf(groups, { span, interval: intervalOf(span), field: 'verdict' })

const hours = { name: 'hour', length: hour } as const
const afternoon = timeSpan('2026-11-27T12:20:00Z', '2026-11-27T16:40:00Z')

const inHours = (span: TimeSpan, groups: CountedGroup[] = []) =>
  bucketsOf(groups, { span, interval: hours, field: 'verdict' })

describe('buckets', () => {
  test('cover the entire period, with zeros for intervals without sessions', () => {
    const at = '2026-11-27T13:00:00Z'
    const groups = [group(at, 'bot', 3), group(at, 'human', 2)]
    const buckets = inHours(afternoon, groups)
    expect(buckets.map(sumOf)).toEqual([0, 5, 0, 0, 0])
    expect(buckets[1]?.counts).toEqual([2, 0, 3])
  })

  test('are cut at the start and end of the period', () => {
    const buckets = inHours(afternoon)
    const [first, last] = [Date.parse('2026-11-27T12:00:00Z'), Date.parse('2026-11-27T16:00:00Z')]
    expect(buckets[0]).toMatchObject({ at: first, since: afternoon.since })
    expect(buckets.at(-1)).toMatchObject({ at: last, until: afternoon.until })
  })

  test('count sessions that expired by retention separately from the verdicts', () => {
    const expired: CountedGroup = {
      start: '2026-11-27T13:00:00Z',
      kind: 'ended',
      values: {},
      sessions: 7,
    }
    const [, second] = inHours(afternoon, [expired])
    expect(second).toMatchObject({ expired: 7, counts: [0, 0, 0] })
  })

  test('are partial if they end after the counted time', () => {
    const partial = (span: TimeSpan, now?: string) => {
      const options = {
        span,
        interval: hours,
        field: 'verdict',
        now: Date.parse(now ?? '2027'),
      } as const
      return bucketsOf([], options).map(({ isPartial }) => isPartial)
    }
    const entire = timeSpan('2026-11-27T12:20:00Z', '2026-11-27T17:00:00Z')
    expect(partial(afternoon)).toEqual([false, false, false, false, true])
    expect(partial(entire)).toEqual(Array(5).fill(false))
    expect(partial(entire, '2026-11-27T16:59:00Z')).toEqual([false, false, false, false, true])
  })
})

describe('series', () => {
  const start = '2026-11-27T13:00:00Z'
  const counted = (country: string | null, sessions: number): CountedGroup => ({
    start,
    kind: 'value',
    values: { country },
    sessions,
  })
  const other: CountedGroup = { start, kind: 'other', values: {}, sessions: 9 }
  const groups = [counted('DE', 2), counted('FR', 5), counted(null, 1), counted('DE', 4), other]

  test('are the values of a field, largest first, and then all other ones', () => {
    expect(seriesOf(groups, 'country').map(({ title, color }) => [title, color])).toEqual([
      ['DE', '--series-1'],
      ['FR', '--series-2'],
      ['none', '--series-3'],
      ['other', '--series-other'],
    ])
    const options = { span: afternoon, interval: hours, field: 'country' } as const
    expect(bucketsOf(groups, options)[1]?.counts).toEqual([6, 5, 1, 9])
  })

  test('leave out sessions without an agent, which would hide the others', () => {
    const agent = (agent_provider: string | null): CountedGroup => ({
      start,
      kind: 'value',
      values: { agent_provider },
      sessions: 3,
    })
    const series = seriesOf([agent(null), agent('openai')], 'agent_provider')
    expect(series.map(({ title }) => title)).toEqual(['openai'])
  })
})

describe('axis labels', () => {
  const inZone = (timeZone: string, span: TimeSpan, max: number) => {
    const interval = intervalOf(span)
    const { tick } = bucketTimeFormats(interval, timeZone)
    return ticksOf(bucketsIn(span), interval, { max, timeZone }).map(tick)
  }

  test('of days are UTC days in every time zone', () => {
    const span = timeSpan('2026-11-01T00:00:00Z', '2026-11-15T00:00:00Z')
    const labels = ['1 Nov', '3 Nov', '5 Nov', '7 Nov', '9 Nov', '11 Nov', '13 Nov']
    for (const zone of ['UTC', 'Asia/Kolkata', 'America/Los_Angeles', 'Pacific/Kiritimati']) {
      expect(inZone(zone, span, 8)).toEqual(labels)
      const times = bucketTimeFormats(intervalOf(span), zone)
      expect(bucketsIn(span).slice(0, 2).map(times.range)).toEqual(['1 Nov 2026', '2 Nov 2026'])
    }
  })

  test('of hours are bucket starts, even in a time zone with a half-hour offset', () => {
    const span = timeSpan('2026-11-26T12:00:00Z', '2026-11-27T12:00:00Z')
    expect(inZone('Asia/Kolkata', span, 4)).toEqual(['18:30', '27 Nov', '06:30', '12:30'])
    expect(inZone('UTC', span, 4)).toEqual(['12:00', '18:00', '27 Nov', '06:00'])
    const [first] = bucketsIn(span)
    expect(first && bucketTimeFormats(intervalOf(span), 'Asia/Kolkata').range(first)).toBe(
      '26 Nov 2026, 17:30 GMT+5:30 to 18:30 GMT+5:30',
    )
  })

  test('of hours stay round when daylight saving time begins or ends', () => {
    const back = timeSpan('2026-10-24T22:00:00Z', '2026-10-25T10:00:00Z')
    expect(inZone('Europe/Berlin', back, 6)).toEqual(['25 Oct', '03:00', '06:00', '09:00'])
    const { range } = bucketTimeFormats({ name: 'hour', length: hour }, 'Europe/Berlin')
    const buckets = inHours(back)
    expect(buckets.slice(2, 4).map(range)).toEqual([
      '25 Oct 2026, 02:00 CEST to 02:00 CET',
      '25 Oct 2026, 02:00 CET to 03:00 CET',
    ])
    const forward = timeSpan('2026-03-28T23:00:00Z', '2026-03-29T09:00:00Z')
    expect(inZone('Europe/Berlin', forward, 4)).toEqual(['29 Mar', '03:00', '06:00', '09:00'])
  })

  test('are never more than `max`', () => {
    for (const length of [hour, 3 * hour, day, 7 * day, 30 * day, 199 * day])
      for (const max of [1, 3, 12]) {
        const until = Date.parse('2026-11-27T12:34:00Z')
        const span = { since: until - length, until, last: undefined }
        expect(inZone('Europe/Berlin', span, max).length).toBeLessThanOrEqual(max)
      }
  })
})
