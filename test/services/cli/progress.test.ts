import { expect, it } from 'vitest'
import { barText, progressBar } from '../../../services/cli/progress.ts'

it.each([
  [0, 0, '[..............................]   0 %'],
  [50, 12, '[###############...............]  50 %, 12 s left'],
  [1, 10, '[..............................]   1 %, 17 min left'],
  [1, 360, '[..............................]   1 %, 9.9 h left'],
  [100, 9, '[##############################] 100 %, 0 s left'],
  [101, 9, '[##############################] 100 %, 0 s left'],
])('draws %i of 100 after %i s', (done, seconds, text) => {
  expect(barText(done, { total: 100, seconds })).toBe(text)
})

it('draws a total of 0', () => {
  expect(barText(0, { total: 0, seconds: 1 })).toContain('0 %')
})

it.each([
  [true, 2],
  [false, 0],
])('is drawn and removed only if standard error is a terminal: %s', (isTTY, writes) => {
  const written: string[] = []
  const times = [0, 500, 500]
  const bar = progressBar(10, {
    out: { isTTY, write: (text: string) => written.push(text) },
    clock: () => times.shift() ?? 500,
  })
  bar.add(5)
  bar.add(1)
  bar.end()
  expect(written).toHaveLength(writes)
})
