import { expect, test } from 'vitest'
import { allHiddenComments, hiddenComments } from './comments.ts'

test('a comment by // above an export, or above a member of one, is found; others are not', () => {
  const text = `// Hidden.
export const one = 1

/** Shown where it is used. */
export interface Two {
  // Hidden too.
  three: string
  /** In milliseconds. */
  four: number
}

interface Own {
  // Nobody imports it.
  five: string
}

// Says why.
const six = 6
`
  expect(hiddenComments(text)).toEqual([
    { line: 2, what: 'export const one = 1' },
    { line: 7, what: 'three: string' },
  ])
})

test('whoever uses what is exported sees its comment', () => {
  expect(allHiddenComments()).toEqual([])
})
