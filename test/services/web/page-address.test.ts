import { expect, test } from 'vitest'
import { sentAddress } from '../../../services/web/sdk/page-address.ts'

const long = 'x'.repeat(2100)

test.each([
  ['', ''],
  ['https://shop.example/a?b=c#d', 'https://shop.example/a?b=c#d'],
  [`https://shop.example/a?b=${long}#d`, 'https://shop.example/a'],
  [`https://shop.example/a#${long}`, 'https://shop.example/a'],
  [`https://shop.example/${long}?b`, 'https://shop.example/'],
  [`data:text/html,${long}`, `data:text/html,${long}`.slice(0, 2048)],
])('an address that is %.30s... is sent as %.30s', (address, sent) => {
  expect(sentAddress(address)).toBe(sent)
})
