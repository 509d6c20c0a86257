import { randomBytes } from 'node:crypto'
import { generateToken } from '../../infra/crypto/tokens.ts'
import type { ErrorCode } from '../../infra/errors/errors.ts'
import { systemServiceId } from '../../infra/wire/gate.ts'
import { sendExample } from '../authorization/call.ts'
import { bearer } from '../authorization/credential.ts'
import type { Example } from '../authorization/endpoint.ts'
import { silentUrl } from '../authorization/world.ts'
import { eventually } from '../support/eventually.ts'
import type { ProofChanges } from '../support/gate-flow.ts'
import type { Provoke, Provoking } from './provoke.ts'

type GateCode = Extract<ErrorCode, `gate.${string}`>

const post = (path: string, body?: object): Example => ({
  method: 'POST',
  url: `/v1/gate/sessions/${path}`,
  ...(body && { body }),
})

const opened = ({ world: { gate } }: Provoking) => gate.open(systemServiceId)

/** An approval of a new signup with a member changed. */
async function approval(given: Provoking, changes: object, proof?: ProofChanges): Promise<Example> {
  const { id } = await opened(given)
  return post(`${id}/approve`, { ...(await given.world.gate.approval(id, proof)), ...changes })
}

/** A cancellation of a signup that a person approved and whose service does not answer. */
async function cancelledTooLate({ world, organizationId }: Provoking): Promise<Example> {
  const { gate, app } = world
  const { id, pollToken } = await gate.open(await world.service(organizationId, { url: silentUrl }))
  // It waits some seconds for the service; nobody waits for it here.
  void sendExample(app, post(`${id}/approve`, await gate.approval(id)))
  const poll = {
    method: 'GET',
    url: `/v1/gate/sessions/${id}`,
    headers: bearer(pollToken),
  } as const
  await eventually(async () => {
    const { body } = await sendExample(app, poll)
    if (!body.includes('in_progress')) throw new Error(body)
  })
  return post(`${id}/cancel`)
}

async function polledAfterAck({ world: { gate, app } }: Provoking): Promise<Example> {
  const { id, pollToken, ackToken } = await gate.signUp(systemServiceId)
  const headers = bearer(pollToken)
  await sendExample(app, { ...post(`${id}/ack`, { ack_token: ackToken }), headers })
  return { method: 'GET', url: `/v1/gate/sessions/${id}`, headers }
}

/** The fourth attempt of one address at one session. */
async function fourthAttempt(given: Provoking): Promise<Example> {
  const { id } = await opened(given)
  const attempt = { ...post(`${id}/approve`, {}), from: '192.0.2.7' }
  for (let i = 0; i < 3; i++) await sendExample(given.world.app, attempt)
  return attempt
}

/** A request that each code of Gate answers. */
export const gateRequests: Record<GateCode, Provoke> = {
  'gate.session_not_found': () => post(`gate_${'0'.repeat(26)}/cancel`),
  'gate.session_expired': ({ keys }) => ({
    method: 'POST',
    url: '/v1/gate/login-sessions/consume',
    headers: keys.secret,
    body: { code: generateToken('gtcode', randomBytes) },
  }),
  'gate.session_already_resolved': async (given) => {
    const { id } = await opened(given)
    await sendExample(given.world.app, post(`${id}/cancel`))
    return { method: 'GET', url: `/v1/gate/sessions/${id}/consent` }
  },
  'gate.approval_in_progress': cancelledTooLate,
  'gate.bot_detected': (given) => approval(given, {}, { verdict: 'bot' }),
  'gate.approve_token_invalid': (given) =>
    approval(given, { approve_token: generateToken('gtapr', randomBytes) }),
  'gate.svc_proof_required': (given) => approval(given, { sealed_token: undefined }),
  'gate.svc_proof_invalid': (given) => approval(given, {}, { age: 3 * 60 * 1000 }),
  'gate.delivery_consumed': polledAfterAck,
  'gate.delivery_ack_invalid': async ({ world: { gate } }) => {
    const { id, pollToken } = await gate.signUp(systemServiceId)
    const body = { ack_token: generateToken('gtack', randomBytes) }
    return { ...post(`${id}/ack`, body), headers: bearer(pollToken) }
  },
  'gate.claim_code_invalid': async (given) => {
    const { id, pollToken } = await opened(given)
    return { ...post(`${id}/claim`, { code: '000 000' }), headers: bearer(pollToken) }
  },
  'gate.rate_limit': fourthAttempt,
  'gate.validation_failed': () => ({ method: 'POST', url: '/v1/gate/sessions', body: {} }),
}
