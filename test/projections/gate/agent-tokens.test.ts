import { expect, test } from 'vitest'
import {
  findAgentToken,
  findLoginByCode,
  findTokenOfAccount,
} from '../../../projections/gate/queries.ts'
import { day, events, gacct, gate, minute, recorded, start, useGateWorld } from './events.ts'

const world = await useGateWorld()
const find = (...hashes: string[]) => findAgentToken(world.pool, hashes)
const ofAccount = (n: number) => findTokenOfAccount(world.pool, gacct(n))
const findLogin = (...hashes: string[]) => findLoginByCode(world.pool, hashes)

/** Returns the events of signup `n`, approved at `start`. Every third service has no dashboard. */
const signedUp = (n: number) => [
  events.opened(n, start),
  events.started(n, start),
  events.approved(n, start),
]

const token = {
  gate_account_id: gacct(1),
  gate_session_id: gate(1),
  service_id: 'service-1',
  environment: 'live',
  account_name: 'Robin 1',
  token_hash: 'agent 1',
  status: 'active',
  created_at: start,
  expires_at: start + 90 * day,
}

test('an approval issues a token that is found by any of its hashes and by its account', async () => {
  await world.given(...signedUp(1), ...signedUp(2))
  expect(await find('under another master key', 'agent 1')).toMatchObject(token)
  expect(await ofAccount(1)).toMatchObject(token)
  expect(await find('agent 2')).toMatchObject({ gate_account_id: gacct(2) })
  expect(await find('under another master key')).toBeUndefined()
  expect(await find()).toBeUndefined()
  expect(await ofAccount(9)).toBeUndefined()
})

test('an approval for a service without a dashboard issues no token', async () => {
  await world.given(...signedUp(3))
  expect(await ofAccount(3)).toBeUndefined()
})

test('a token is renewed and permanently revoked', async () => {
  await world.given(...signedUp(1), events.renewed(1, start + day))
  expect(await find('agent 1')).toMatchObject({ status: 'active', expires_at: start + 91 * day })
  await world.given(events.revoked(1, start + 2 * day), events.renewed(1, start + 3 * day))
  expect(await find('agent 1')).toMatchObject({ status: 'revoked' })
})

test('a replayed approval does not reactivate a revoked token', async () => {
  const approved = recorded(events.approved(1, start), { id: 'evt_1' })
  await world.given(events.opened(1, start))
  await world.apply([approved])
  await world.given(events.revoked(1, start + day))
  await world.apply([approved])
  await world.given(events.approved(1, start + 2 * day))
  expect(await find('agent 1')).toMatchObject({ status: 'revoked', expires_at: start + 90 * day })
})

test('events of a token that was never issued create no token', async () => {
  await world.given(events.renewed(1, start), events.revoked(1, start))
  expect(await ofAccount(1)).toBeUndefined()
})

test('a login is found by its code and keeps the id of the request that consumed it', async () => {
  await world.given(events.loginOpened(5, start), events.loginApproved(5, start + minute))
  const code = `code ${start + minute}`
  expect(await findLogin('under another master key', code)).toMatchObject({
    id: gate(5),
    kind: 'login',
    code: 'issued',
    code_expires_at: start + 6 * minute,
    code_consumption_id: null,
  })
  await world.given(events.codeConsumed(5, start + 2 * minute))
  const consumption = `use ${start + 2 * minute}`
  expect(await findLogin(code)).toMatchObject({
    code: 'consumed',
    code_consumption_id: consumption,
  })
  expect(await findLogin('under another master key')).toBeUndefined()
})
