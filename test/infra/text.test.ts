import { expect, test } from 'vitest'
import { base64urlBytes, characterCount, isPlainText, parsedJson } from '../../infra/text.ts'

test('a character outside the BMP is one', () => {
  expect(['', 'a', 'é', '😀', 'a😀b'].map(characterCount)).toEqual([0, 1, 1, 1, 3])
})

test('plain text has no control characters and no half characters', () => {
  expect(['Zoë 😀', 'a b'].map(isPlainText)).toEqual([true, true])
  expect(['a\nb', '\u0000', '\u0085', 'a\ud83d', '\ude00'].map(isPlainText)).toEqual(
    Array(5).fill(false),
  )
})

test('base64url is read as we write it and in no other way', () => {
  expect(base64urlBytes('-_8')).toEqual(Buffer.from([0xfb, 0xff]))
  for (const text of ['-_8=', '+/8', '-_8 ', ' -_8', '-_9', '-.8', '-_8A!'])
    expect([text, base64urlBytes(text)]).toEqual([text, undefined])
})

test.each([
  ['{"a":1}', { a: 1 }],
  ['null', null],
  ['', undefined],
  ['{"a":', undefined],
  ['<html>', undefined],
])('parsedJson reads %j as %j', (text, value) => expect(parsedJson(text)).toEqual(value))
