import { randomBytes } from 'node:crypto'
import { afterAll } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { noNetwork } from '../../../../infra/ip/network.ts'
import {
  type DeliveryKeys,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../../infra/wire/delivery-envelope.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findGateSession } from '../../../../projections/gate/queries.ts'
import type { GateSessionOpened } from '../../../../schemas/events.ts'
import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { startSignupApproval } from '../../../../services/gate/approval/commands.ts'
import { concludeApproval } from '../../../../services/gate/approval/conclude.ts'
import type { GateParts } from '../../../../services/gate/context.ts'
import { createGateLimits } from '../../../../services/gate/limits.ts'
import { requireSession } from '../../../../services/gate/sessions.ts'
import { createPages } from '../../../../services/gate/store.ts'
import { createVault, findBundle } from '../../../../services/gate/vault.ts'
import { signUpOrganization } from '../../../../services/organizations/sign-up.ts'
import { createSigningSecrets } from '../../../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../../../services/webhooks/direct-calls.ts'
import { gateOwner } from '../../../support/gate-world.ts'
import { publicUrl } from '../../../support/send.ts'
import { openServiceWorld, type ServiceWorld } from '../../../support/service-world.ts'
import { proof, signupOpened } from '../fixtures.ts'
import { scriptedServices } from '../gate-api.ts'

export interface Signup {
  id: GateSessionId
  keys: DeliveryKeys
}

/** Parts of a Gate that is not started, with a simulated clock and services that respond as scripted. */
export async function useApprovalWorld() {
  const world = await openServiceWorld({ log: 'memory' })
  afterAll(() => world.close())
  const { now, deps } = world
  const { client, ...services } = scriptedServices()
  const parts = partsOf(world, client)

  const happen = (...events: DomainEvent[]) =>
    world.append(gateProjection, { organizationId: null, environment: null }, ...events)

  /** Creates an undecided signup; without an owner, for the built-in service. */
  async function signup(
    owner?: { serviceId: string; organizationId: string },
    changes: Partial<GateSessionOpened> = {},
  ): Promise<Signup> {
    const id = randomId('gate', randomBytes)
    const keys = generateDeliveryKeys()
    const { key_id: delivery_key_id, public_key: delivery_public_key } = keys.delivery
    await happen(
      signupOpened({
        gate_session_id: id,
        service_id: owner?.serviceId ?? 'tidegate',
        organization_id: owner?.organizationId ?? null,
        metadata: JSON.stringify({ team: 'blue' }),
        delivery_key_id,
        delivery_public_key,
        opened_at: now.ms,
        ...changes,
      }),
    )
    return { id, keys }
  }

  const find = async (id: GateSessionId) => requireSession(await findGateSession(world.pool, id))

  /** Approves the signup. */
  async function approve({ id }: Signup): Promise<void> {
    const token = await parts.pages.issueApproveToken(id)
    const approval = { token, proof, isSameNetwork: true, acceptedEnvVars: [] }
    const { decide } = deps
    await startSignupApproval({ ...parts, decide }, { session: await find(id), ...approval })
  }

  async function started(...args: Parameters<typeof signup>): Promise<Signup> {
    const made = await signup(...args)
    await approve(made)
    return made
  }

  /** Durations of the waits. */
  const waits: number[] = []
  /** Advances the clock instead of waiting. */
  const approvalDeps = (changes: Partial<ApprovalDeps> = {}): ApprovalDeps => ({
    ...parts,
    sleep: async (ms) => {
      waits.push(ms)
      now.ms += Math.max(0, ms)
    },
    ...changes,
  })

  return {
    ...world,
    ...services,
    parts,
    waits,
    approvalDeps,
    owner: (fields?: Parameters<typeof gateOwner>[1]) => gateOwner(deps, fields),
    happen,
    signup,
    approve,
    started,
    find,
    conclude: ({ id: gateSessionId }: { id: GateSessionId }, given = approvalDeps()) =>
      concludeApproval(given, { gateSessionId, signal: new AbortController().signal }),
    /** Decrypts the credentials of an approved signup. */
    async delivered({ id, keys }: Signup) {
      const bundle = await findBundle(parts.vault, await find(id))
      if (!bundle) throw new Error(`nothing is delivered to ${id}`)
      return {
        integrator: openEnvelope(bundle.integrator, keys.privateKey),
        gate: openEnvelope(bundle.gate, keys.privateKey),
      }
    },
  }
}

type Client = Parameters<typeof createDirectCalls>[0]['client']

function partsOf({ deps, log, codec, applied }: ServiceWorld, client: Client): GateParts {
  const secrets = createSigningSecrets(deps.keyring)
  return {
    ...deps,
    applied,
    log,
    publicUrl,
    leaseMs: 3000,
    integratorTimeoutMs: 10_000,
    directCalls: createDirectCalls({ ...deps, log, codec, client, secrets }),
    network: noNetwork,
    domainReader: { lookUpTxt: async () => [], fileAt: async () => undefined },
    consentKeys: { publishableKey: async () => 'pk_live_x', secretHashes: async () => [] },
    signUpOrganization: ({ startedAt, ...signup }) =>
      signUpOrganization({ ...deps, idTime: startedAt }, signup),
    eraseSession: async () => false,
    eraseSessions: async () => {},
    retentionMs: Number.MAX_SAFE_INTEGER,
    vault: createVault(deps),
    pages: createPages(deps),
    limits: createGateLimits(deps.pool),
  }
}
