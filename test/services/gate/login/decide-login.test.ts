import { expect, test } from 'vitest'
import {
  decideCodeConsumption,
  decideLoginOpening,
  type LoginOpeningState,
} from '../../../../services/gate/login/decide.ts'
import {
  type RegisteredService as Service,
  systemService,
} from '../../../../services/gate/registry/registered.ts'
import { codeTtlMs, sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { approvedLogin, login, now, token } from '../../../support/gate-rows.ts'
import { organization, organizationId } from '../../../support/organization-rows.ts'
import { eventsOf, refusalOf, scope, strangers } from '../accounts/given.ts'

const builtIn = systemService('https://tidegate.example')
const service: Service = {
  ...builtIn,
  id: 'acme',
  organization_id: organizationId,
  definition: { ...builtIn.definition, dashboard_login_url: 'https://acme.example/auth/gate' },
}
const requester = { requested_ip: '203.0.113.9', requested_user_agent: 'agent' }
const opening = { gateSessionId: login.id, requester, now }
const state = { token, service, organization, session: undefined }
const changed = (definition: Partial<Service['definition']>): Service => ({
  ...service,
  definition: { ...service.definition, ...definition },
})
const revoked = { ...token, status: 'revoked' } as const

test('given a good token, when a login is opened, then it waits 15 minutes for the account of the token', () => {
  expect(eventsOf(decideLoginOpening(state, opening))).toEqual([
    {
      type: 'LoginSessionOpened',
      data: {
        gate_session_id: login.id,
        service_id: 'acme',
        organization_id: organizationId,
        environment: 'live',
        gate_account_id: token.gate_account_id,
        account_name: 'Robin',
        ...requester,
        opened_at: now,
        expires_at: now + sessionTtlMs,
      },
    },
  ])
})

test('given the login is there, when the command is repeated, then nothing happens', () => {
  expect(decideLoginOpening({ ...state, session: login }, opening)).toEqual([])
})

test('given a token that is not good, or of another service, then it is no key to this one', () => {
  for (const bad of [undefined, revoked, { ...token, expires_at: now }, { ...token, service_id: 'other' }]) {
    expect(refusalOf(() => decideLoginOpening({ ...state, token: bad }, opening))).toEqual({
      status: 401,
      code: 'auth.invalid_api_key',
    })
  }
  // Whatever was made before.
  const repeated = { ...state, session: login, token: revoked }
  expect(refusalOf(() => decideLoginOpening(repeated, opening)).status).toBe(401)
})

test('given a service that is not open, or has no dashboard, then it is not found', () => {
  const closed: Pick<LoginOpeningState, 'service' | 'organization'>[] = [
    { organization, service: undefined },
    { organization, service: { ...service, status: 'disabled' } },
    { organization, service: changed({ discoverable: false }) },
    { organization, service: changed({ dashboard_login_url: null }) },
    { organization, service: builtIn },
    { service, organization: { ...organization, status: 'suspended' } },
  ]
  for (const part of closed) {
    expect(refusalOf(() => decideLoginOpening({ ...state, ...part }, opening))).toEqual({
      status: 404,
      code: 'request.not_found',
    })
  }
})

const command = { ...scope, consumptionId: 'this', now: now + 1 }
const approved = { session: approvedLogin, token }
const consumed = { ...approvedLogin, code: 'consumed', code_consumption_id: 'this' } as const

test('given a code, when it is used, then it is used up', () => {
  expect(eventsOf(decideCodeConsumption(approved, command))).toEqual([
    {
      type: 'LoginCodeConsumed',
      data: { gate_session_id: login.id, consumption_id: 'this', consumed_at: now + 1 },
    },
  ])
})

test('given a code that was used, when that request is repeated, then nothing happens; by another, then it is told', () => {
  expect(decideCodeConsumption({ session: consumed, token }, command)).toEqual([])
  const later = { ...command, now: now + codeTtlMs }
  expect(decideCodeConsumption({ session: consumed, token: revoked }, later)).toEqual([])
  expect(
    refusalOf(() =>
      decideCodeConsumption({ session: consumed, token }, { ...command, consumptionId: 'other' }),
    ),
  ).toEqual({
    status: 410,
    code: 'gate.session_already_resolved',
  })
})

test("given a code that is old, another's or of nobody, or whose agent was shut out, then it has expired", () => {
  const expired = [
    [{ session: undefined, token }, command],
    [{ session: login, token }, command],
    [{ session: { ...approvedLogin, code: 'expired' }, token }, command],
    [approved, { ...command, now: now + codeTtlMs }],
    [{ session: approvedLogin, token: revoked }, command],
    [{ session: approvedLogin, token: undefined }, command],
    ...strangers.map((stranger) => [approved, { ...command, ...stranger }] as const),
    ...strangers.map(
      (stranger) =>
        [
          { session: consumed, token },
          { ...command, ...stranger },
        ] as const,
    ),
  ] as const
  for (const [given, when] of expired) {
    expect(refusalOf(() => decideCodeConsumption(given, when))).toEqual({
      status: 410,
      code: 'gate.session_expired',
    })
  }
})
