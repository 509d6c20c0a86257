import { expect, test } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { requesterNetwork } from '../../../services/gate/requests.ts'
import { nowhere } from '../../projections/world-events.ts'

const clock = () => 0
const seenFrom = (readerIp: string, requestedIp: string | null) =>
  requesterNetwork({ network: noNetwork, clock }, requestedIp, readerIp).same

test.each([
  ['203.0.113.9', '203.0.113.77', true],
  ['203.0.113.9', '203.0.114.9', false],
  ['::ffff:203.0.113.9', '203.0.113.9', true],
  ['2001:db8:1:2::1', '2001:db8:1:ffff::9', true],
  ['2001:db8:1::1', '2001:db8:2::1', false],
  ['203.0.113.9', '2001:db8:1::1', false],
  ['127.0.0.1', '::1', true],
  ['127.0.0.1', '127.8.9.10', true],
  ['127.0.0.1', '203.0.113.9', false],
  ['unknown', '203.0.113.9', false],
  ['203.0.113.9', null, null],
])(
  'a browser at %s and an agent at %s are in the same network: %s',
  (readerIp, requestedIp, same) => {
    expect(seenFrom(readerIp, requestedIp)).toBe(same)
  },
)

test('country and operator come from the network database; unknown values are null', () => {
  const source = {
    ...noNetwork,
    lookup(ip: string, at: number) {
      const known = noNetwork.lookup(ip, at)
      const location = { ...nowhere, country_code: 'IS', country: 'Iceland' }
      return { ...known, location, routing: { asn: '1', organization: 'Example Hosting' } }
    },
  }
  expect(requesterNetwork({ network: source, clock }, '203.0.113.9', '198.51.100.1')).toEqual({
    same: false,
    country: 'Iceland',
    operator: 'Example Hosting',
  })
  expect(requesterNetwork({ network: noNetwork, clock }, '203.0.113.9', '198.51.100.1')).toEqual({
    same: false,
    country: null,
    operator: null,
  })
})
