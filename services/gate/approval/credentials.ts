import { generateToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { type DeliveryEnvelope, sealEnvelope } from '../../../infra/wire/delivery-envelope.ts'
import { agentTokenEnvName } from '../../../infra/wire/gate.ts'
import type { GateParts } from '../context.ts'
import { requireRegisteredService } from '../registry/registered-services.ts'
import { agentTokenTtlMs, deliveryTtlMs } from '../sessions.ts'
import { sealBundle } from '../vault.ts'
import { deliveryKeyOf, type SignupCredentials, type StartedSession } from './decide.ts'

/**
 * Generates an ack token, and an agent token if the service has a dashboard, and seals them to the agent's key. Returns
 * their hashes, and this envelope with the service's (`integrator`), encrypted with the session's data key.
 */
export async function issueCredentials(
  { pool, publicUrl, keyring, random, clock, vault }: GateParts,
  session: StartedSession,
  integrator: DeliveryEnvelope,
): Promise<SignupCredentials> {
  const { id: gateSessionId, service_id: serviceId } = session
  const service = await requireRegisteredService(pool, { serviceId, publicUrl })
  const dataKey = await vault.ensure(gateSessionId)
  const ackToken = generateToken('gtack', random)
  const agentToken =
    service.definition.dashboard_login_url === null ? null : generateToken('agt', random)
  const outputs = agentToken === null ? {} : { [agentTokenEnvName(serviceId)]: agentToken }
  const gate = sealEnvelope(
    { version: 1, outputs, ack_token: ackToken },
    { delivery: deliveryKeyOf(session), random },
  )
  const now = clock()
  return {
    delivery_sealed: sealBundle({ integrator, gate }, { dataKey, gateSessionId, random }),
    delivery_expires_at: now + deliveryTtlMs,
    ack_token_hash: tokenHashes(keyring, ackToken)[0],
    agent_token_hash: agentToken && tokenHashes(keyring, agentToken)[0],
    agent_token_expires_at: agentToken && now + agentTokenTtlMs,
    approved_at: now,
  }
}
