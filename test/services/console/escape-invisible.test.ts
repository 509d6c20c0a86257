import { expect, test } from 'vitest'
import { escapeInvisible } from '../../../services/console/pages/shared/escape-invisible.ts'

test.each([
  ['shop\u202emoc.live', 'shop\\u202emoc.live'],
  ['\u2069\u2066\u200f\u061c', '\\u2069\\u2066\\u200f\\u061c'],
  ['a\u200bb\u00adc\ufeffd\u3164', 'a\\u200bb\\u00adc\\ufeffd\\u3164'],
  ['\0\u001b[2J\u0085\u2028', '\\u0000\\u001b[2J\\u0085\\u2028'],
  ['\u{e0041}', '\\u{e0041}'],
])('%j is escaped as %s', (text, shown) => {
  expect(escapeInvisible(text)).toBe(shown)
})

test('visible characters and white space are unchanged', () => {
  const text = 'Zoë שלום 8\u2009412 「日本」 a\tb\r\nc 🙂 …×'
  expect(escapeInvisible(text)).toBe(text)
})
