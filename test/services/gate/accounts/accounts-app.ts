import { randomBytes } from 'node:crypto'
import {
  generateToken,
  isTokenOf,
  type Token,
  tokenHashes,
} from '../../../../infra/crypto/tokens.ts'
import { unavailable } from '../../../../infra/errors/errors.ts'
import type { DecideAs } from '../../../../infra/event-store/decide.ts'
import { type GateAccountId, type GateSessionId, randomId } from '../../../../infra/ids.ts'
import { gateProjection } from '../../../../projections/gate/projection.ts'
import { findAgentToken, findGateSession } from '../../../../projections/gate/queries.ts'
import { createReadCurrent } from '../../../../services/gate/accounts/commands.ts'
import { accountRoutes } from '../../../../services/gate/accounts/routes.ts'
import { loginCode } from '../../../../services/gate/login/commands.ts'
import { decideLoginApproval } from '../../../../services/gate/login/decide.ts'
import { loginRoutes } from '../../../../services/gate/login/routes.ts'
import { sessionStream } from '../../../../services/gate/sessions.ts'
import { proof, signedUp } from '../given.ts'
import { type GateOwner, gateOwner } from '../../../support/gate-world.ts'
import { createServiceApp, type Send } from '../../../support/service-app.ts'
import { openServiceWorld } from '../../../support/service-world.ts'
import { gateContext, gateOptions, gateParts } from '../parts.ts'

export interface Account {
  token: Token<'agt'>
  gateAccountId: GateAccountId
  /** The signup that made it. */
  gateSessionId: GateSessionId
}

/** The routes of agent tokens and logins over the real log, read models, limits, authentication and idempotency. */
export async function startAccounts() {
  const world = await openServiceWorld()
  const { pool, now, base } = world
  const { keyring } = base
  const outage = { isOn: false }
  const decideAs: DecideAs = (actor, cameWith) => (request) =>
    outage.isOn
      ? Promise.reject(unavailable(new Error('the log is away')))
      : world.deps.decideAs(actor, cameWith)(request)
  const deps = { ...world.deps, decideAs }
  const { app, context, send } = await createServiceApp({ ...world, deps })
  const parts = gateParts(gateOptions(world, { decideAs }))
  const { pages } = parts
  const start = () => createReadCurrent(parts)
  let current = start()
  const readCurrent: typeof current = (read) => current(read)
  for (const add of [accountRoutes, loginRoutes])
    add(app, { ...gateContext(parts, context), readCurrent })

  /** POST to a path below /v1/gate. */
  const post = (path: string, request: Omit<Send, 'method' | 'url'> = {}) =>
    send({ ...request, method: 'POST', url: `/v1/gate/${path}` })

  /** A signup for the owner's service that was approved now, with its agent token. */
  async function account(owner: GateOwner): Promise<Account> {
    const token = generateToken('agt', randomBytes)
    const gateAccountId = randomId('gacct', randomBytes)
    const gateSessionId = randomId('gate', randomBytes)
    const about = { gate_session_id: gateSessionId, gate_account_id: gateAccountId }
    const [agent_token_hash] = tokenHashes(keyring, token)
    const events = signedUp(owner, { ...about, agent_token_hash, at: now.ms })
    await world.append(gateProjection, owner, ...events)
    return { token, gateAccountId, gateSessionId }
  }

  /** A person approves the login; its one-time code. */
  async function approve(gateSessionId: string): Promise<string> {
    const id = (await findGateSession(pool, gateSessionId))?.id
    if (!id) throw new Error(`there is no login ${gateSessionId}`)
    const approveToken = await pages.open(id)
    const approveTokenHashes = tokenHashes(keyring, approveToken)
    const { code, hash: codeHash } = loginCode({ keyring, gateSessionId, approveToken })
    const command = {
      approveTokenHashes,
      proof,
      codeHash,
      now: now.ms,
    }
    await world.deps.decide({
      ...sessionStream(id),
      load: (tx) => findGateSession(tx, id),
      decide: (session) => decideLoginApproval(session, command),
    })
    return code
  }

  return {
    ...world,
    deps,
    parts,
    outage,
    /** What a server does that starts over the same database. */
    startAgain() {
      current = start()
    },
    post,
    account,
    approve,
    owner: (options?: Parameters<typeof gateOwner>[1]) => gateOwner(deps, options),
    /** The token as it is stored. */
    stored: (token: string) => findAgentToken(pool, tokenHashes(keyring, token)),
    login: (gateSessionId: string) => findGateSession(pool, gateSessionId),
    isStoredAs: (token: string, hash: string | null) => isTokenOf(keyring, { token, hash }),
    async stop() {
      await app.close()
      await world.close()
    },
  }
}

export type Accounts = Awaited<ReturnType<typeof startAccounts>>
