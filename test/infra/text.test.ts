import { expect, test } from 'vitest'
import {
  characterCount,
  decodeBase64url,
  isPlainText,
  parseJsonOrUndefined,
} from '../../infra/text.ts'

test('a character outside the BMP counts as one', () => {
  expect(['', 'a', 'é', '😀', 'a😀b'].map(characterCount)).toEqual([0, 1, 1, 1, 3])
})

test('plain text has no control characters or lone surrogates', () => {
  expect(['Zoë 😀', 'a b'].map(isPlainText)).toEqual([true, true])
  expect(['a\nb', '\u0000', '\u0085', 'a\ud83d', '\ude00'].map(isPlainText)).toEqual(
    Array(5).fill(false),
  )
})

test('only canonical base64url is decoded', () => {
  expect(decodeBase64url('-_8')).toEqual(Buffer.from([0xfb, 0xff]))
  for (const text of ['-_8=', '+/8', '-_8 ', ' -_8', '-_9', '-.8', '-_8A!'])
    expect([text, decodeBase64url(text)]).toEqual([text, undefined])
})

test.each([
  ['{"a":1}', { a: 1 }],
  ['null', null],
  ['', undefined],
  ['{"a":', undefined],
  ['<html>', undefined],
])('parseJsonOrUndefined parses %j to %j', (text, value) =>
  expect(parseJsonOrUndefined(text)).toEqual(value),
)
