import { expect, test } from 'vitest'
import { privateNames, privateNamesOf } from './words.ts'

test('a name is split into its words, and prose is no name', () => {
  const text = `// What was asked.
const toldTypes = isKeptBy('what was given') + 'wanted_by'
const askedly = \`select look_at from t\``
  expect(privateNames(text)).toEqual(['toldTypes', 'isKeptBy', 'wanted_by', 'look_at'])
})

test('no identifier uses a word that only this project would understand', () => {
  expect(Object.fromEntries(privateNamesOf(['']))).toEqual({})
})
