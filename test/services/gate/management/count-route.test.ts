import { expect, test } from 'vitest'
import { sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { eventually } from '../../../support/eventually.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()

async function countsOf(key: string, query = '') {
  return (await gate.ask(`signup-counts${query}`, { key })).data
}
const iso = (ms: number) => encodeURIComponent(new Date(ms).toISOString())

test('counts signups by service and outcome', async () => {
  const owner = await gate.owner()
  const { serviceId, secretKey } = owner
  const { flow } = gate
  const cancel = (id: string, query = '') => gate.post(`sessions/${id}/cancel${query}`)
  const began = gate.now.ms

  const expired = await flow.open(serviceId)
  gate.now.ms += sessionTtlMs + 1
  await eventually(async () =>
    expect(await gate.session(expired.id)).toMatchObject({ status: 'expired' }),
  )
  const second = gate.now.ms
  await cancel((await flow.open(serviceId)).id)
  const delivered = await flow.signUp(serviceId)
  const ack = { ack_token: delivered.ackToken }
  await gate.post(`sessions/${delivered.id}/ack`, ack, { key: delivered.pollToken })
  await flow.signUp(serviceId)
  await flow.open(serviceId)

  const zeros = { started: 0, approved: 0, created: 0, delivered: 0, pending: 0, declined: 0 }
  const none = { ...zeros, closed: 0, claim_failed: 0, integrator_failed: 0, expired: 0 }
  const all = {
    ...none,
    service_id: serviceId,
    started: 5,
    approved: 2,
    created: 2,
    delivered: 1,
    pending: 1,
    declined: 1,
    expired: 1,
  }
  expect(await countsOf(secretKey)).toMatchObject({ complete: true, services: [all] })
  const since = `?since=${iso(second)}`
  expect((await countsOf(secretKey, since)).services).toEqual([{ ...all, started: 4, expired: 0 }])
  const until = `?since=${iso(began)}&until=${iso(second)}`
  expect((await countsOf(secretKey, until)).services).toEqual([
    { ...none, service_id: serviceId, started: 1, expired: 1 },
  ])
  const stranger = await gate.owner()
  expect((await countsOf(stranger.secretKey)).services).toEqual([
    { ...none, service_id: stranger.serviceId },
  ])
  const { revealedKey: testKey } = await gate.issue({
    ...owner,
    environment: 'test',
    scopes: ['*'],
  })
  expect((await countsOf(testKey)).services).toEqual([])
})

test('refuses a malformed or reversed period', async () => {
  const { secretKey: key } = await gate.owner()
  const outcome = async (query: string) =>
    (await gate.ask(`signup-counts?${query}`, { key })).outcome
  expect(await outcome('since=yesterday')).toBe('422 request.validation_failed since')
  expect(await outcome(`since=${iso(2000)}&until=${iso(1000)}`)).toBe(
    '422 request.validation_failed since',
  )
})
