import { expect, test } from 'vitest'
import { storedUrl } from '../../../services/collect/schemas.ts'
import { cpuTimeOf } from '../../support/cpu-time.ts'

const size = 240_000

test.each([
  ['at signs', `https://${'@'.repeat(size)}a`],
  ['dots', `https://${'a.'.repeat(size / 2)}`],
  ['a query', `https://a.example/?${'ß'.repeat(size / 2)}`],
  ['steps up', `https://a.example/${'a/../'.repeat(size / 5)}`],
])(
  'a URL of 240 KB of %s costs less than 20 times what 8 KB of a query cost',
  async (_, hostile) => {
    const repeat = (url: string) => () => {
      for (let i = 0; i < 20; i++) storedUrl(url)
    }
    const honest = await cpuTimeOf(repeat(`https://shop.example/path?${'a=ß&'.repeat(2000)}`))
    expect((await cpuTimeOf(repeat(hostile))) / honest).toBeLessThan(20)
  },
)

test('a URL of 200 KB loses its query as a shorter one does', () => {
  expect(storedUrl(`https://shop.example/path?${'a'.repeat(200_000)}`)).toBe(
    'https://shop.example/path',
  )
  expect(storedUrl(`data:text/html,${'a'.repeat(200_000)}`)).toBe('data:///')
})
