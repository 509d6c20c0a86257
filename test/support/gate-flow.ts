import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { asId, type Clock, type GateSessionId, randomId } from '../../infra/ids.ts'
import type { PostOptions, RequestOutcome } from '../../infra/safe-http/client.ts'
import {
  type DeliveryKeys,
  generateDeliveryKeys,
  openEnvelope,
  sealEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { consentUrl } from '../../infra/wire/gate.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import type { ConsentKeys } from '../../services/gate/context.ts'
import { bindingOf } from './gate-proof.ts'

interface GateFlowOptions {
  app: FastifyInstance
  publicUrl: string
  clock: Clock
  consentKeys: ConsentKeys
}

export interface OpenedSession {
  id: GateSessionId
  pollToken: string
  keys: DeliveryKeys
}

/** Approved signup whose credentials can be fetched. */
export interface ApprovedSignup extends OpenedSession {
  gateAccountId: string
  ackToken: string
  /** Set if the service has a dashboard. */
  agentToken: string | undefined
}

export interface ProofChanges {
  verdict?: 'human' | 'bot' | 'inconclusive'
  /** Uses the page of another Gate session. */
  of?: string
  /** Milliseconds. */
  age?: number
  handOff?: object
}

let requests = 0

/** Returns an unused IP address, because some rate limits are per address. */
export function freshAddress(): string {
  requests++
  return `10.${(requests >> 16) & 255}.${(requests >> 8) & 255}.${requests & 255}`
}

/** Returns the claims of a sealed token that binds a person's use of the page to the approve token. */
export function proofOf(
  { publicUrl, id, token, now }: { publicUrl: string; id: string; token: string; now: number },
  { verdict = 'human', of = id, age = 1000, handOff }: ProofChanges = {},
) {
  return {
    session_id: randomId('sid', randomBytes),
    decision: {
      event_id: randomId('evt', randomBytes),
      verdict,
      risk_score: 12,
      evaluated_at: new Date(now - age).toISOString(),
    },
    request: { url: consentUrl(publicUrl, asId('gate', of)) },
    hand_off: {
      challenge_answered: true,
      input_observed: true,
      binding: bindingOf(token),
      ...handOff,
    },
  }
}

interface Sent {
  method?: 'GET' | 'POST'
  token?: string
  body?: object
  ip?: string
}

/** Steps of signups and logins over HTTP, with proofs like those of a person's consent page. */
export function gateFlow({ app, publicUrl, clock, consentKeys }: GateFlowOptions) {
  async function send(path: string, { method = 'POST', token, body, ip = freshAddress() }: Sent) {
    const response = await app.inject({
      method,
      url: `/v1/gate/${path}`,
      remoteAddress: ip,
      headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...(body && { payload: body }),
    })
    if (response.statusCode >= 300)
      throw new Error(`${method} ${path}: ${response.statusCode} ${response.body}`)
    return response.json().data
  }

  async function open(
    serviceId: string,
    { ip, ...changes }: { ip?: string; [member: string]: unknown } = {},
  ): Promise<OpenedSession> {
    const keys = generateDeliveryKeys()
    const body = {
      service_id: serviceId,
      account_name: 'Robin',
      delivery: keys.delivery,
      ...changes,
    }
    const { id, poll_token: pollToken } = await send('sessions', { body, ...(ip && { ip }) })
    return { id, pollToken, keys }
  }

  const approveToken = async (id: string): Promise<string> =>
    (await send(`sessions/${id}/consent`, { method: 'GET' })).approve_token

  /** Returns the sealed proof that the session's consent page gets from scoring. */
  async function proof(id: string, token: string, changes?: ProofChanges) {
    const payload = proofOf({ publicUrl, id, token, now: clock() }, changes)
    return sealToken({
      payload,
      secretHashes: await consentKeys.secretHashes(),
      random: randomBytes,
    })
  }

  /** Returns the body that the page posts when a person approves. */
  async function approval(id: string, changes?: ProofChanges) {
    const approve_token = await approveToken(id)
    return { approve_token, sealed_token: await proof(id, approve_token, changes) }
  }

  const approve = async (id: string) => send(`sessions/${id}/approve`, { body: await approval(id) })

  async function signUp(serviceId: string): Promise<ApprovedSignup> {
    const session = await open(serviceId)
    await approve(session.id)
    const poll = { method: 'GET', token: session.pollToken } as const
    const { gate_account_id: gateAccountId, delivery_bundle } = await send(
      `sessions/${session.id}`,
      poll,
    )
    const { ack_token: ackToken = '', outputs } = openEnvelope(
      delivery_bundle.gate,
      session.keys.privateKey,
    )
    return { ...session, gateAccountId, ackToken, agentToken: Object.values(outputs)[0] }
  }

  async function openLogin(serviceId: string, token: string): Promise<GateSessionId> {
    return (await send('login-sessions', { token, body: { service_id: serviceId } })).id
  }

  return {
    open,
    approveToken,
    proof,
    approval,
    approve,
    signUp,
    openLogin,
    /** Returns the one-time code of a login that a person approved. */
    loginCode: async (serviceId: string, agentToken: string): Promise<string> =>
      (await approve(await openLogin(serviceId, agentToken))).code,
  }
}

/** Responds like a service that creates an account, in place of a client that sends the request. */
export async function answeringService({
  body,
}: Pick<PostOptions, 'body'>): Promise<RequestOutcome> {
  const { gate_account_id, delivery } = JSON.parse(body).data
  const outputs = { ACME_API_KEY: `key of ${gate_account_id}` }
  const sealed = sealEnvelope({ version: 1, outputs }, { delivery, random: randomBytes })
  return {
    kind: 'response',
    status: 200,
    body: Buffer.from(JSON.stringify({ encrypted_delivery: sealed })),
    durationMs: 1,
    retryAfter: undefined,
  }
}
