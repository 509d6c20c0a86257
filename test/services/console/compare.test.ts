import { describe, expect, test } from 'vitest'
import {
  anomalyTitle,
  filtersOfAnomaly,
} from '../../../services/console/pages/overview/anomaly-title.ts'
import {
  changeOf,
  liftSignals,
  previousPeriod,
  sumSessions,
} from '../../../services/console/pages/overview/compare.ts'

const hour = 3_600_000
const span = (since: number, until: number) => ({ since, until, last: undefined })

test('the previous period covers the same times of day', () => {
  expect(previousPeriod(span(48 * hour, 49 * hour))).toEqual(span(24 * hour, 25 * hour))
  expect(previousPeriod(span(24 * hour, 48 * hour))).toEqual(span(0, 24 * hour))
  expect(previousPeriod(span(96 * hour, 121 * hour))).toEqual(span(48 * hour, 73 * hour))
})

describe('a change', () => {
  test('of a number is in percent, and of a share in percentage points', () => {
    expect(changeOf({ part: 150 }, { part: 100 })).toEqual({
      text: '▲ 50 %',
      words: '50 percent more than',
    })
    expect(changeOf({ part: 5, whole: 100 }, { part: 20, whole: 200 })).toEqual({
      text: '▼ 5.0 pp',
      words: '5.0 percentage points less than',
    })
    expect(changeOf({ part: 1, whole: 10 }, { part: 0, whole: 10 })?.text).toBe('▲ 10 pp')
    expect(changeOf({ part: 10_000 }, { part: 10_001 })?.text).toBe('no change')
  })

  test('is unknown without anything to compare with', () => {
    expect(changeOf({ part: 5 }, { part: 0 })).toBeUndefined()
    expect(changeOf({ part: null }, { part: 5 })).toBeUndefined()
    expect(changeOf({ part: 5, whole: 10 }, { part: 0, whole: 0 })).toBeUndefined()
  })
})

const group = (values: Record<string, string | null>, sessions: number) => ({
  start: null,
  kind: 'value' as const,
  values,
  sessions,
})

test('sessions are summed over the groups with all values', () => {
  const groups = [
    group({ page_host: 'a.example', handed_off: 'true' }, 90),
    group({ page_host: 'a.example', handed_off: 'false' }, 10),
    group({ page_host: null, handed_off: 'false' }, 7),
    { ...group({}, 5), kind: 'other' as const },
  ]
  expect(sumSessions(groups, { handed_off: 'false' })).toBe(17)
  expect(sumSessions(groups, { page_host: 'a.example', handed_off: 'false' })).toBe(10)
})

test('signals are ordered by their share of bots against that of others', () => {
  const of = (signal: string, bots: number, others: number) => [
    group({ signal, verdict: 'bot' }, bots),
    group({ signal, verdict: 'human' }, others),
  ]
  const groups = [
    ...of('everywhere', 100, 900),
    ...of('webdriver', 80, 1),
    ...of('rare', 4, 0),
    ...of('common', 60, 90),
    ...of('trust', 10, 800),
  ]
  expect(liftSignals(groups, { bots: 100, others: 900 })).toEqual([
    { signal: 'webdriver', share: 0.8, lift: expect.closeTo(358, 0) },
    { signal: 'common', share: 0.6, lift: expect.closeTo(5.9, 1) },
  ])
})

describe('the title of an anomaly', () => {
  const at = Date.parse('2026-11-27T12:00:00Z')
  const anomaly = (
    values: [field: 'attribution' | 'asn' | 'signal' | 'page_path', string, number][],
  ) => ({
    values: values.map(([field, value, sessions]) => ({ field, value, sessions })),
    sessions: 260,
    expected: 10,
    lift: 13,
    bots: 260,
    bot_lift: 20,
    started_at: '2026-11-27T09:24:30.000Z',
    ended_at: '2026-11-27T12:00:00.000Z',
    series: [],
  })
  const title = (...values: Parameters<typeof anomaly>[0]) =>
    anomalyTitle(anomaly(values), at, 'UTC')

  test('names the tool and the path, and links to their sessions', () => {
    const selenium = anomaly([
      ['signal', 'selenium_globals', 260],
      ['attribution', 'tool:selenium', 260],
      ['page_path', '/signup', 250],
    ])
    expect(anomalyTitle(selenium, at, 'UTC')).toBe(
      '+250 sessions from Selenium on /signup since 09:24',
    )
    expect(filtersOfAnomaly(selenium)).toEqual({
      attribution: 'tool:selenium',
      page_path: '/signup',
    })
  })

  test('leaves out values that few of its sessions have, and names a signal if there is no source', () => {
    expect(title(['signal', 'lone_click', 260], ['asn', '64500', 100])).toBe(
      '+250 sessions with lone click since 09:24',
    )
    expect(title(['asn', '64500', 260])).toBe('+250 sessions from AS64500 since 09:24')
  })

  test('has the end if it ended more than a quarter of an hour ago', () => {
    const ended = { ...anomaly([['page_path', '/', 260]]), ended_at: '2026-11-27T09:50:00.000Z' }
    expect(anomalyTitle(ended, at, 'UTC')).toBe('+250 sessions on /, 09:24–09:50')
    expect(anomalyTitle(ended, at - 2 * hour, 'UTC')).toBe('+250 sessions on / since 09:24')
    expect(anomalyTitle(ended, at + 24 * hour, 'UTC')).toBe(
      '+250 sessions on /, 27 Nov, 09:24–09:50',
    )
  })

  test('has the date if it began more than a day ago', () => {
    const later = at + 3 * 24 * hour
    const lasting = {
      ...anomaly([['page_path', '/', 260]]),
      ended_at: new Date(later).toISOString(),
    }
    expect(anomalyTitle(lasting, later, 'UTC')).toBe('+250 sessions on / since 27 Nov, 09:24')
  })
})
