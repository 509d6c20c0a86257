import { describe, expect, it } from 'vitest'
import { instant, since } from '../../../services/cli/arguments.ts'

const agoMs = (text: string) => Date.now() - since(text)

describe('a time on the command line', () => {
  it.each([
    ['2026-11-23T12:00:00Z', '2026-11-23T12:00:00.000Z'],
    ['2026-11-23T12:00:00.5+02:00', '2026-11-23T10:00:00.500Z'],
    ['2026-11-23', '2026-11-23T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ])('%s is %s', (text, iso) => {
    for (const read of [instant, since]) expect(new Date(read(text)).toISOString()).toBe(iso)
  })

  it.each([
    ['90m', 5_400_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
  ])('%s is an age', (text, ms) => {
    expect(Math.abs(agoMs(text) - ms)).toBeLessThan(60_000)
    expect(() => instant(text)).toThrow('2026-11-23T12:00:00Z')
  })

  it.each([
    '',
    '7',
    '2001',
    '2026-11-23T12:00Z',
    '1',
    '0',
    'Nov 23 2026',
    '2026-11-23T12:00:00',
    '2026-11-23 12:00',
    '2026-02-30',
    '2026-13-01',
    '2026-11-23T25:00:00Z',
    '20261123',
    '1795435200',
    '1795435200000',
    '7 d',
    '-7d',
    '7y',
    '1.5d',
    'yesterday',
    'now',
    '2026-11-23T12:00:00Z junk',
    '+012026-11-23',
  ])('%j is rejected with examples', (text) => {
    expect(() => instant(text)).toThrow('2026-11-23, 2026-11-23T12:00:00Z')
    expect(() => since(text)).toThrow('7d')
  })
})
