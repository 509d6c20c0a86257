import { afterAll, expect, test } from 'vitest'
import { createTestApp } from './test-app.ts'

const ja4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const http2 = '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p'
const nothing = { ja4: null, http2: null }

const app = await createTestApp({
  trustedProxies: ['10.0.0.0/8'],
  edgeHeaders: { ja4: 'x-ja4', http2: 'x-http2' },
})
app.get('/handshake', ({ handshake }) => handshake)
afterAll(() => app.close())

async function read(headers: Record<string, string>, remoteAddress = '10.0.0.7') {
  return (await app.inject({ url: '/handshake', headers, remoteAddress })).json()
}
const forwarded = { 'x-forwarded-for': '203.0.113.9' }

test('reads fingerprints from a trusted proxy that forwards a client address', async () => {
  expect(await read({ ...forwarded, 'x-ja4': ja4, 'x-http2': http2 })).toEqual({ ja4, http2 })
})

test.each([
  ['any other address', forwarded, '203.0.113.8'],
  ['a proxy that is the client itself', {}, '10.0.0.7'],
  ['a proxy that forwards no address', { 'x-forwarded-for': 'unknown' }, '10.0.0.7'],
])('ignores fingerprints from %s', async (_, headers, from) => {
  expect(await read({ ...headers, 'x-ja4': ja4, 'x-http2': http2 }, from)).toEqual(nothing)
})

test.each([
  ['', ''],
  [`${ja4}, ${ja4}`, `${http2}, ${http2}`],
  ['t13d1517h2', '1:65536;2:0'],
  [ja4.toUpperCase(), http2.toUpperCase()],
  ['<script>', '1:65536;2:0;4:6291456|x|0|m'],
  [`${ja4}0`, `${'1:1;'.repeat(400)}1:1|1|0|m`],
])('ignores the malformed fingerprint %s', async (badJa4, badHttp2) => {
  expect(await read({ ...forwarded, 'x-ja4': badJa4, 'x-http2': badHttp2 })).toEqual(nothing)
})

test('reads fingerprints of QUIC and Firefox', async () => {
  const quic = 'q13i0312h3_55b375c5d22e_06cda9e17597'
  expect(await read({ ...forwarded, 'x-ja4': quic })).toMatchObject({ ja4: quic })
  const firefox = '1:65536,4:131072,5:16384|12517377|3:0:0:201,5:0:0:101|m,p,a,s'
  expect(await read({ ...forwarded, 'x-http2': firefox })).toMatchObject({ http2: firefox })
})
