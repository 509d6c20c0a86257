import { expect, test } from 'vitest'
import { searchableForms } from '../../projections/sessions/apply-visitors.ts'

test.each<[string, string[]]>([
  ['https://shop.example/checkout', []],
  ['https://shop.example/gr%C3%B6%C3%9Fe', ['https://shop.example/größe']],
  ['https://shop.example/a%20b?q=100%25', ['https://shop.example/a b?q=100%']],
  ['https://shop.example/?q=red+shoes', ['https://shop.example/?q=red shoes']],
  [
    'https://shop.example/a%2Bb/%C3%A9',
    ['https://shop.example/a+b/é', 'https://shop.example/a b/é'],
  ],
  ['https://xn--bcher-kva.example/', ['https://bücher.example/']],
  ['https://shop.example/%E9/%zz/%', []],
  ['https://shop.example/a%0Ab%00c', []],
  ['about:blank', []],
])('%s is found as stored and in readable forms', (url, read) => {
  expect(searchableForms(url)).toEqual([url, ...read])
})
