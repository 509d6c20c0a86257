import { randomBytes } from 'node:crypto'
import { generateToken, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { type DecideAs, decidedEvent } from '../../../../infra/event-store/decide.ts'
import { asId, type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { generateDeliveryKeys, sealEnvelope } from '../../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../../projections/gate/queries.ts'
import type { OrganizationStatus } from '../../../../projections/organizations/tables.ts'
import {
  decideApproval,
  decideApprovalFailure,
  decideApprovalStart,
} from '../../../../services/gate/approval/decide.ts'
import { deliveryTtlMs, sessionStream } from '../../../../services/gate/sessions.ts'
import { signupRoutes } from '../../../../services/gate/signup/routes.ts'
import { sealBundle } from '../../../../services/gate/vault.ts'
import { freshAddress } from '../../../support/gate-flow.ts'
import { loginOpened, proof } from '../given.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { tester } from '../../../support/projections.ts'
import { createServiceApp, type Send } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'
import { gateContext, gateOptions, gateParts } from '../parts.ts'

export interface Opened {
  id: GateSessionId
  poll_token: string
  status: string
  consent_url: string
  confirmation_code: string
  expires_at: string
}

/** The routes of signups over the real log, read models, vault and limits; the clock is the test's. */
export async function startSignups() {
  const world = await openServiceWorld()
  const { pool, now, base, deps } = world
  const { keyring } = base
  const decidedAbout: string[] = []
  const decideAs: DecideAs = (actor, cameWith) => (request) => {
    decidedAbout.push(request.key)
    return deps.decideAs(actor, cameWith)(request)
  }
  const decide = decideAs(tester)
  const parts = gateParts(gateOptions(world, { decideAs }))
  const { app, context, send: sendTo } = await createServiceApp(world)
  signupRoutes(app, gateContext(parts, context))
  await app.ready()

  /** To a path below /v1/gate/sessions, from a new address unless told: limits are by address. Sends text as it is. */
  const send = ({ url, ip = freshAddress(), body, ...request }: Send) =>
    sendTo({
      ...request,
      ...(typeof body === 'string' ? { payload: body } : { body }),
      url: `/v1/gate/sessions${url}`,
      ip,
    })

  const keys = generateDeliveryKeys()

  async function open(serviceId = 'tidegate'): Promise<Opened> {
    const body = { service_id: serviceId, account_name: 'Robin', delivery: keys.delivery }
    const opened = await send({ method: 'POST', url: '', body })
    if (opened.status !== 201) throw new Error(`no session: ${JSON.stringify(opened.body)}`)
    return opened.body.data
  }

  /** As the approval of a person would, without asking any service. */
  async function start(id: GateSessionId): Promise<void> {
    const approveTokenHashes = tokenHashes(keyring, await parts.pages.open(id))
    await parts.vault.make(id)
    await decide({
      ...sessionStream(id),
      load: async (tx) => ({
        session: await findGateSession(tx, id),
        endpointId: null,
        isClaimRequired: false,
      }),
      decide: (state) =>
        decideApprovalStart(state, {
          approveTokenHashes,
          proof,
          gateAccountId: randomId('gacct', randomBytes),
          isSameNetwork: true,
          claimCodeHash: 'claim',
          now: now.ms,
        }),
    })
  }

  /** Starts it, and ends it with credentials; resolves to the ack token. */
  async function approve(id: GateSessionId): Promise<string> {
    await start(id)
    const ackToken = generateToken('gtack', randomBytes)
    const sealed = (payload: { outputs: Record<string, string>; ack_token?: string }) =>
      sealEnvelope({ version: 1, ...payload }, { delivery: keys.delivery, random: randomBytes })
    const bundle = {
      integrator: sealed({ outputs: { ACME_KEY: 'secret' } }),
      gate: sealed({ outputs: {}, ack_token: ackToken }),
    }
    const dataKey = await parts.vault.make(id)
    const delivery_sealed = sealBundle(bundle, { dataKey, gateSessionId: id, random: randomBytes })
    await decide({
      ...sessionStream(id),
      load: (tx) => findGateSession(tx, id),
      decide: (session) =>
        decideApproval(session, {
          delivery_sealed,
          delivery_expires_at: now.ms + deliveryTtlMs,
          ack_token_hash: tokenHashes(keyring, ackToken)[0],
          agent_token_hash: null,
          agent_token_expires_at: null,
          approved_at: now.ms,
        }),
    })
    return ackToken
  }

  /** A login that waits, whose account is nobody's. */
  async function openLogin(): Promise<GateSessionId> {
    const id = randomId('gate', randomBytes)
    const event = loginOpened({
      gate_session_id: id,
      service_id: 'tidegate',
      organization_id: null,
      opened_at: now.ms,
      gate_account_id: randomId('gacct', randomBytes),
    })
    const about = { organizationId: null, environment: null, now: now.ms }
    await decide({
      ...sessionStream(id),
      load: async () => undefined,
      decide: () => [decidedEvent(event, { ...about, eventId: randomId('evt', randomBytes) })],
    })
    return id
  }

  /** Ends a started approval as when the service never answers. */
  async function fail(id: GateSessionId): Promise<void> {
    await decide({
      ...sessionStream(id),
      load: (tx) => findGateSession(tx, id),
      decide: (session) =>
        decideApprovalFailure(session, { problem: 'It did not answer.', now: now.ms }),
    })
  }

  return {
    ...world,
    app,
    parts,
    /** What was decided about, in order. */
    decidedAbout,
    keys,
    send,
    open,
    openLogin,
    start,
    approve,
    fail,
    setStatus: (organizationId: string, status: OrganizationStatus) =>
      setStatus(deps, organizationId, status),
    session: (id: string) => findGateSession(pool, asId('gate', id)),
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

export type Signups = Awaited<ReturnType<typeof startSignups>>
