import { expect, test } from 'vitest'
import { storedUrl } from '../../../services/collect/schemas.ts'
import { cpuTimeOf } from '../../support/cpu-time.ts'

test.each([
  ['https://shop.example/a?b=c#d', 'https://shop.example/a?b=c#d'],
  [`https://shop.example/a?${'q'.repeat(200_000)}#d`, 'https://shop.example/a'],
  [`https://u:p@shop.example:8443/${'p'.repeat(4000)}?q`, 'https://shop.example:8443/'],
  [`https://${'h'.repeat(4000)}.example/`, 'about:blank'],
  ['data:text/html,secret', 'data:///'],
  [`data:text/html,${'secret'.repeat(30_000)}`, 'data:///'],
  ['blob:https://shop.example/9115d58c-bcda-ff47', 'blob:https://shop.example/'],
  ['blob:null/9115d58c-bcda-ff47', 'blob:///'],
  ['file:///home/ann/shop.html', 'file:///'],
  ['file://server/ann/shop.html', 'file:///'],
  ['javascript:alert(1)', 'javascript:///'],
  ['about:srcdoc', 'about:blank'],
  ['capacitor://localhost/cart', 'capacitor://localhost/cart'],
  [`${'s'.repeat(4000)}:x`, 'about:blank'],
  ['not a url', undefined],
])('%.40s is stored as %s', (address, stored) => {
  expect(storedUrl(address)).toBe(stored)
})

const size = 240_000

test.each([
  ['at signs', `https://${'@'.repeat(size)}a`],
  ['dots', `https://${'a.'.repeat(size / 2)}`],
  ['a query', `https://a.example/?${'ß'.repeat(size / 2)}`],
  ['steps up', `https://a.example/${'a/../'.repeat(size / 5)}`],
])(
  'a URL with 240 KB of %s takes less than 20 times as long as 8 KB of query',
  async (_, hostile) => {
    const repeat = (url: string) => () => {
      for (let i = 0; i < 20; i++) storedUrl(url)
    }
    const honest = await cpuTimeOf(repeat(`https://shop.example/path?${'a=ß&'.repeat(2000)}`))
    expect((await cpuTimeOf(repeat(hostile))) / honest).toBeLessThan(20)
  },
)
