import type { Keyring } from '../../../infra/crypto/keyring.ts'
import type { DataKey } from '../../../infra/crypto/sealing.ts'
import { generateToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import type { Random } from '../../../infra/ids.ts'
import { type DeliveryEnvelope, sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import type { RegisteredService } from '../registry/registered.ts'
import { agentTokenTtlMs, deliveryTtlMs } from '../session-state.ts'
import { sealBundle } from './bundle.ts'
import type { Credentials, StartedSession } from './finish-approval.ts'

interface CredentialsOptions {
  session: StartedSession
  service: RegisteredService
  /** What the service sealed. */
  integrator: DeliveryEnvelope
  /** Of this signup. What is drawn from it is the same whenever the step is repeated. */
  dataKey: DataKey
  keyring: Keyring
  random: Random
  /** Epoch milliseconds. */
  now: number
}

/** What an approval makes: the ack token, an agent token where the service has a dashboard login, and both sealed. */
export function makeCredentials(options: CredentialsOptions): Credentials {
  const { session, service, integrator, dataKey, keyring, random, now } = options
  const ackToken = generateToken('gtack', dataKey.random('ack-token'))
  const agentToken = agentTokenFor(service, dataKey)
  const outputs = agentToken === null ? {} : { [agentTokenEnvName(service.id)]: agentToken }
  const gate = sealEnvelope(
    { version: 1, outputs, ack_token: ackToken },
    { delivery: deliveryOf(session), random },
  )
  return {
    delivery_sealed: sealBundle({ integrator, gate }, { dataKey, gateSessionId: session.id, random }),
    delivery_expires_at: now + deliveryTtlMs,
    ack_token_hash: tokenHashes(keyring, ackToken)[0],
    agent_token_hash: agentToken && tokenHashes(keyring, agentToken)[0],
    agent_token_expires_at: agentToken && now + agentTokenTtlMs,
    approved_at: now,
  }
}

/** The key that whoever signed up opens deliveries with. */
export function deliveryOf({ delivery_key_id, delivery_public_key }: StartedSession) {
  return { key_id: delivery_key_id, public_key: delivery_public_key }
}

function agentTokenFor({ definition }: RegisteredService, dataKey: DataKey) {
  if (definition.dashboard_login_url === null) return null
  return generateToken('agt', dataKey.random('agent-token'))
}
