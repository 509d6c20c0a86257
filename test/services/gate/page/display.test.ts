import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { problemOf } from '../../../../services/gate/page/assets/api.js'
import {
  contrast,
  isDistinct,
  parseHex,
  textColorOn,
} from '../../../../services/gate/page/assets/colors.js'
import { durationText, minutesAndSeconds } from '../../../../services/gate/page/assets/countdown.js'
import {
  loginAddress,
  multiLine,
  singleLine,
  webAddress,
} from '../../../../services/gate/page/assets/text.js'
import { logoOrigin } from '../../../../services/gate/page/routes.ts'

const color = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255))
const grounds: [number, number, number][] = [
  [255, 255, 255],
  [18, 33, 38],
]

describe('colors', () => {
  test('text is readable on every color', () => {
    fc.assert(fc.property(color, (any) => contrast(any, textColorOn(any)) >= 4.5))
  })

  test('a button in a color close to the background gets a border', () => {
    expect(isDistinct([91, 61, 245], [255, 255, 255])).toBe(true)
    for (const ground of grounds) expect(isDistinct(ground, ground)).toBe(false)
    expect(isDistinct([255, 221, 0], [255, 255, 255])).toBe(false)
    expect(isDistinct([255, 221, 0], [18, 33, 38])).toBe(true)
  })

  test('only hexadecimal colors are parsed', () => {
    expect(parseHex('#0aF')).toEqual([0, 170, 255])
    expect(parseHex('#0aF8')).toEqual([0, 170, 255])
    expect(parseHex('#0102ff')).toEqual([1, 2, 255])
    expect(parseHex('#0102ff00')).toEqual([1, 2, 255])
    for (const other of ['red', '#12', '#12345', ' #123', '#123;', 'url(x)', '', null, 7, {}])
      expect(parseHex(other)).toBeUndefined()
  })
})

describe('untrusted text', () => {
  test('shows no characters that are invisible or change the direction of others', () => {
    const any = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(any, (text) => {
        expect(singleLine(text)).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
        expect(multiLine(text, { lines: 5, columns: 9 })).not.toMatch(
          /(?!\n)[\p{Cc}\p{Bidi_Control}]/u,
        )
      }),
    )
  })

  test('is truncated to the limit', () => {
    expect(singleLine('x'.repeat(500), 10)).toBe('xxxxxxxxx…')
    expect(multiLine(`${'y'.repeat(500)}\nb\nc\nd`, { lines: 2, columns: 3 })).toBe('yy…\nb\n…')
    expect(singleLine(undefined)).toBe('')
  })

  test('keeps words and emoji intact', () => {
    for (const text of ['می‌خواهم', '👩‍💻', '❤️', 'Acme Mail', '日本語'])
      expect(singleLine(text)).toBe(text)
  })
})

describe('URLs', () => {
  test('only http and https URLs are linked, and none that disguises its host', () => {
    expect(webAddress('https://xn--pypal-4ve.com/a')?.host).toBe('xn--pypal-4ve.com')
    expect(webAddress('https://pаypal.com')?.host).toBe('xn--pypal-4ve.com')
    for (const other of [
      'javascript:x',
      'data:text/html,x',
      'ftp://a',
      '/a',
      'https://a@b.c',
      '',
      null,
      7,
    ])
      expect(webAddress(other)).toBeUndefined()
  })

  test('a login redirects only to the origin of the dashboard', () => {
    const dashboard = 'https://app.acme.example/auth'
    expect(loginAddress('https://app.acme.example/?code=1', dashboard)).toBe(
      'https://app.acme.example/?code=1',
    )
    for (const other of [
      'https://app.acme.example:444/',
      'http://app.acme.example/',
      'https://acme.example/',
      7,
    ])
      expect(loginAddress(other, dashboard)).toBeUndefined()
    expect(loginAddress('https://app.acme.example/', undefined)).toBeUndefined()
  })

  test('a content security policy can contain the origin of a logo', () => {
    expect(logoOrigin('https://Cdn.Acme.example:8443/a.png?b')).toBe(
      'https://cdn.acme.example:8443',
    )
    expect(logoOrigin('http://127.0.0.1:3000/a.png')).toBe('http://127.0.0.1:3000')
    const others = [
      'https://*/',
      'https://*.example/',
      'https://a;b/',
      "https://a,'x'/",
      'data:image/png,x',
      'x',
      '',
      null,
    ]
    for (const other of others) expect(logoOrigin(other), String(other)).toBeUndefined()
  })
})

test('problemOf maps error responses to problems', () => {
  expect(problemOf({ status: 403, code: 'gate.bot_detected' })).toEqual({ kind: 'flagged' })
  expect(problemOf({ status: 429, retryAfter: '12' })).toEqual({ kind: 'limited', waitSeconds: 12 })
  expect(problemOf({ status: 409, code: 'gate.approval_in_progress', retryAfter: '1' })).toEqual({
    kind: 'in_progress',
    waitSeconds: 1,
  })
  expect(problemOf({ status: 502, retryAfter: 'soon' })).toEqual({ kind: 'trouble' })
  const resolved = (status: string, kind: string) =>
    problemOf({
      status: 409,
      code: 'gate.session_already_resolved',
      details: {
        fields: [
          { name: 'status', issue: status },
          { name: 'kind', issue: kind },
        ],
      },
    })
  expect(resolved('integrator_failed', 'signup').resolution).toEqual({
    view: 'failed',
    kind: 'signup',
  })
  expect(resolved('approved', 'login').resolution).toEqual({ view: 'approved', kind: 'login' })
  expect(resolved('other', 'signup').resolution).toBeUndefined()
  expect(problemOf({ status: 409, code: 'gate.session_already_resolved' })).toEqual({
    kind: 'resolved',
  })
})

test('durations are written in words and rounded up', () => {
  expect([0, 59, 60, 874].map(minutesAndSeconds)).toEqual(['0:00', '0:59', '1:00', '14:34'])
  expect([0.2, 1, 40, 90, 119, 5400, 80_000].map(durationText)).toEqual([
    '1 second',
    '1 second',
    '40 seconds',
    '2 minutes',
    '2 minutes',
    '2 hours',
    '23 hours',
  ])
})
