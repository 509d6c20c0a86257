import { expect, test } from 'vitest'
import { shortenUrl } from '../../../services/web/sdk/shorten-url.ts'

const long = 'x'.repeat(2100)

test.each([
  ['', ''],
  ['https://shop.example/a?b=c#d', 'https://shop.example/a?b=c#d'],
  [`https://shop.example/a?b=${long}#d`, 'https://shop.example/a'],
  [`https://shop.example/a#${long}`, 'https://shop.example/a'],
  [`https://shop.example/${long}?b`, 'https://shop.example/'],
  [`data:text/html,${long}`, `data:text/html,${long}`.slice(0, 2048)],
])('the URL "%.30s…" is shortened to "%.30s"', (url, shortened) => {
  expect(shortenUrl(url)).toBe(shortened)
})
