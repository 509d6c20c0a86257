import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createTrouble } from '../../../../services/webhooks/dispatch/trouble.ts'

const lines: string[] = []
const logger = pino(
  { base: null, timestamp: false },
  { write: (line) => void lines.push(JSON.parse(line).msg) },
)

beforeEach(() => {
  vi.useFakeTimers()
  lines.length = 0
})
afterEach(() => {
  vi.useRealTimers()
})

test('one line says that it began and one that it is over', () => {
  const trouble = createTrouble(logger)
  trouble.over(500)
  for (let i = 0; i < 3; i++) expect(trouble.met(new Error('no database'))).toBe(500)
  expect(trouble.over(40)).toBe(40)
  trouble.over(40)
  expect(lines).toEqual(['webhooks cannot be taken, trying again', 'webhooks are taken again'])
})

test('a server is not ready when nothing could be taken for ten seconds, until something can', async () => {
  const trouble = createTrouble(logger)
  trouble.met(new Error('no database'))
  vi.advanceTimersByTime(9_999)
  trouble.met(new Error('no database'))
  await expect(trouble.check()).resolves.toBeUndefined()
  vi.advanceTimersByTime(1)
  await expect(trouble.check()).rejects.toThrow('webhooks cannot be taken')
  trouble.over(500)
  await expect(trouble.check()).resolves.toBeUndefined()
})
