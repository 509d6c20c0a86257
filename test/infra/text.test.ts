import { expect, test } from 'vitest'
import { characterCount, isPlainText } from '../../infra/text.ts'

test('a character outside the BMP is one', () => {
  expect(['', 'a', 'é', '😀', 'a😀b'].map(characterCount)).toEqual([0, 1, 1, 1, 3])
})

test('plain text has no control characters and no half characters', () => {
  expect(['Zoë 😀', 'a b'].map(isPlainText)).toEqual([true, true])
  expect(['a\nb', '\u0000', '\u0085', 'a\ud83d', '\ude00'].map(isPlainText)).toEqual(Array(5).fill(false))
})
