import { randomBytes } from 'node:crypto'
import { generateToken } from '../../infra/crypto/tokens.ts'
import { bearer, type Credential, credential, secretKey, type Tenants } from './credential.ts'
import type { GateContext } from './endpoint.ts'
import type { World } from './world.ts'

/** An organization with services and accounts, and every kind of token that is used as a credential. */
export async function createGateTokens(
  world: World,
  { own, other }: Tenants,
): Promise<{ gate: GateContext; tokens: Credential[] }> {
  const serviceId = await world.service(own)
  const signup = await world.gate.signUp(serviceId)
  const doomed = await world.gate.signUp(serviceId)
  const foreign = await world.gate.signUp(await world.service(other))
  const revoked = (await world.gate.signUp(serviceId)).agentToken ?? ''
  await revoke(world, { own, token: revoked })
  const invalid: [string, Credential['type'], string][] = [
    ['poll token of another signup', 'poll', doomed.pollToken],
    ['an unknown poll token', 'poll', generateToken('gtpoll', randomBytes)],
    ['a poll token with a typo', 'poll', `${signup.pollToken}0`],
    ['agent token of another service', 'agent', foreign.agentToken ?? ''],
    ['a revoked agent token', 'agent', revoked],
    ['an unknown agent token', 'agent', generateToken('agt', randomBytes)],
    ['ack token', 'agent', signup.ackToken],
  ]
  const gate = {
    serviceId,
    doomedServiceId: await world.service(own),
    signup,
    doomedToken: doomed.agentToken ?? '',
    doomedAccountId: doomed.gateAccountId,
  }
  const tokens = [
    credential('poll token', { type: 'poll', headers: bearer(signup.pollToken) }),
    credential('agent token', { type: 'agent', headers: bearer(signup.agentToken ?? '') }),
    ...invalid.map(([name, type, token]) =>
      credential(name, { type, flaw: 'invalid', headers: bearer(token) }),
    ),
  ]
  return { gate, tokens }
}

async function revoke(world: World, { own, token }: { own: string; token: string }): Promise<void> {
  const headers = await secretKey(world, { organizationId: own })
  const url = '/v1/gate/agent-tokens/revoke'
  const { statusCode } = await world.app.inject({
    method: 'POST',
    url,
    headers,
    payload: { agent_token: token },
  })
  if (statusCode !== 204) throw new Error(`not revoked: ${statusCode}`)
}
