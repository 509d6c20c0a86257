import { describe, expect, test } from 'vitest'
import { csvCell, sessionsCsv } from '../../../services/console/pages/sessions/csv.ts'
import { sessionSummary } from './session-summary.ts'

describe('a CSV cell', () => {
  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '＋1', '－1', '＠x'])(
    'that starts like a formula is prefixed with an apostrophe: %j',
    (text) => {
      expect(csvCell(text).replace(/^"/, '')).toMatch(/^'/)
    },
  )

  test('is quoted if it contains a comma, a quote or a line break', () => {
    expect(csvCell('a,b')).toBe('"a,b"')
    expect(csvCell('say "x"')).toBe('"say ""x"""')
    expect(csvCell('a\r\nb')).toBe('"a\r\nb"')
    expect(csvCell('=HYPERLINK("x")')).toBe('"\'=HYPERLINK(""x"")"')
  })

  test('has invisible and reordering characters escaped', () => {
    expect(csvCell('shop\u202emoc.live\u2066')).toBe('shop\\u202emoc.live\\u2066')
    expect(csvCell('\u061c=1')).toBe('\\u061c=1')
    expect(csvCell('\u200b=1')).toBe('\\u200b=1')
  })

  test('is empty without a value, and numbers and booleans are unchanged', () => {
    expect([null, undefined, 0, -5, false].map(csvCell)).toEqual(['', '', '0', '-5', 'false'])
  })
})

test('every row has as many cells as the header', () => {
  const row = sessionSummary({
    client_user_id: '=cmd',
    latest_decision: { evaluated_at: '2026-11-27T08:00:05.000Z' },
  })
  const [names = '', cells = '', end] = sessionsCsv([row]).split('\r\n')
  expect(cells).toMatch(/^sid_1,2026-11-27T08:00:05\.000Z,bot,98,false,/)
  expect(cells.split(',')[names.split(',').indexOf('client_user_id')]).toBe("'=cmd")
  expect(cells.split(',')).toHaveLength(names.split(',').length)
  expect(end).toBe('')
})
