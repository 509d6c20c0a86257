import { expect, test } from 'vitest'
import { oneMeaning, sharedNames } from './names.ts'

test('the reader of exports sees declarations and lists, and no re-exports', () => {
  const files = new Map([
    ['a.ts', 'export async function one() {}\nexport interface Two {}\nexport const three = 1'],
    [
      'b.ts',
      "export { one } from './a.ts'\nexport type Two = string\nexport {\n  x as three,\n  type Four,\n}",
    ],
    ['c.ts', 'const one = 1\nexport type { Four }'],
  ])
  expect(sharedNames(files)).toEqual(
    new Map([
      ['Four', ['b.ts', 'c.ts']],
      ['Two', ['a.ts', 'b.ts']],
      ['three', ['a.ts', 'b.ts']],
    ]),
  )
})

test('an exported name that several files define has one meaning', () => {
  const shared = [...sharedNames()]
  expect(shared.filter(([name]) => !oneMeaning.has(name))).toEqual([])
  expect(shared.map(([name]) => name).sort()).toEqual([...oneMeaning.keys()].sort())
})
