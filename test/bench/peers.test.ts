import { expect, test } from 'vitest'
import { costRatio, type Round } from '../../bench/compare.ts'
import { signedRequest } from '../../bench/peers/signed-post.ts'
import { verifySignature } from '../../infra/wire/webhooks/signature.ts'

const round = (micros: number, storeMicros: number): Round => ({
  micros,
  storeMicros,
  perSecond: 1,
  peakBytes: 1,
})

test('a cost ratio counts the stores and compares within a round', () => {
  const ours = [round(100, 100), round(1000, 1000)]
  const theirs = [round(100, 0), round(900, 100)]
  const { name, value } = costRatio({ name: 'a record', log: 'embedded', ours, theirs })
  expect([name, value]).toMatchObject(['processor time of a record', { min: 2, max: 2 }])
})

test('peers sign as we do', () => {
  const secret = `whsec_${Buffer.alloc(33, 7).toString('base64')}`
  const { headers, body } = signedRequest({ id: 'evt_1', data: '{"object":"session"}' }, secret)
  const received = { headers, body, secrets: [secret], now: Date.now() }
  expect(verifySignature(received)).toEqual({ valid: true })
  expect(JSON.parse(body)).toMatchObject({ id: 'evt_1', data: { object: 'session' } })
})
