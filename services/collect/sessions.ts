import type { FastifyRequest } from 'fastify'
import { sourceOf } from '../../infra/access/source.ts'
import { bankPartOf } from '../../infra/challenges/bank.ts'
import { canvasChallengeOf, questionsOf } from '../../infra/challenges/challenges.ts'
import { invalidField } from '../../infra/errors/errors.ts'
import { derivedId } from '../../infra/ids.ts'
import {
  type OpenResponse,
  sessionLifetimeMs,
  sharedPostVersion,
} from '../../infra/wire/collect/protocol.ts'
import {
  type Challenges,
  challengesOf,
  createDocumentState,
  type DocumentCache,
  hasDataKey,
  type ServerDocument,
} from './documents.ts'
import { isLowOrder } from './keys.ts'
import { issueNonce } from './nonces.ts'
import {
  documentRecord,
  type EventRecord,
  type Opening,
  type OpeningSession,
  sessionRecord,
} from './opening.ts'
import { type CollectDeps, checkPlatform, ipAddressOf } from './requests.ts'
import type { OpenBody } from './schemas.ts'
import {
  firstContinuityId,
  openContinuityId,
  openResumeToken,
  sealContinuityId,
  sealDocumentId,
  sealResumeToken,
  type Tenant,
} from './sealed-ids.ts'

interface OpenOptions {
  deps: CollectDeps
  cache: DocumentCache
}

/** Opens a session, or another document of a resumed session. `continuity` is the value for the continuity cookie. */
export async function openSession(
  request: FastifyRequest<{ Body: OpenBody }>,
  { deps, cache }: OpenOptions,
): Promise<{ response: OpenResponse; continuity: string }> {
  const { body } = request
  const principal = deps.auth.publishable(request)
  checkPlatform(principal, body.sdk.platform)
  checkPublicKey(body)
  const now = deps.clock()
  const resumed = await resumeSession(body, { tenant: principal, deps, now })
  if (!resumed) deps.admission.admitSession(principal.organizationId)
  const session = resumed ?? (await startSession(request, { tenant: principal, deps, now }))
  const source = sourceOf(ipAddressOf(request, principal))
  const bankPart = bankPartOf(source, { now, master: deps.keyring.current })
  const state = openDocument(body, { session, tenant: principal, deps, cache, now, bankPart })
  const challenges = challengesOf(state)
  const { signatures } = deps
  const opening = { request, session, state, challenges, principal, signatures }
  if (!resumed) deps.admission.pendingSessions.add(session.sessionId)
  await appendOpening(opening, deps)
  deps.countDocument?.(principal.keyId, 'opened')
  cache.documents.set(state.documentId, state)
  const continuity = sealContinuityId(session.continuityId, principal, deps)
  return { response: responseOf(state, { session, challenges, deps, now }), continuity }
}

async function appendOpening(
  opening: Opening,
  { dataKeys, log, codec }: CollectDeps,
): Promise<void> {
  const { session } = opening
  const append = async (...events: EventRecord[]) => {
    await log.append(events.map(({ event, meta }) => codec.toRecord(event, meta)))
  }
  if (session.resumed) return append(documentRecord(opening))
  try {
    await append(sessionRecord(opening), documentRecord(opening))
  } catch (error) {
    dataKeys.discard(session.sessionId)
    throw error
  }
}

function checkPublicKey({ clientPublicKey }: OpenBody): void {
  if (!isLowOrder(clientPublicKey)) return
  throw invalidField({
    name: 'clientPublicKey',
    issue: 'invalid',
    expected: 'a point that is not of low order',
  })
}

interface SessionOptions {
  tenant: Tenant
  deps: CollectDeps
  now: number
}

// Returns undefined without a token, or if its session belongs to another tenant, has expired or was erased.
async function resumeSession(
  { resumeToken, sdk }: OpenBody,
  { tenant, deps, now }: SessionOptions,
): Promise<OpeningSession | undefined> {
  const facts =
    resumeToken === undefined ? undefined : openResumeToken(resumeToken, tenant, deps.keyring)
  if (!facts || facts.platform !== sdk.platform || now - facts.createdAt > sessionLifetimeMs)
    return undefined
  if (!(await hasDataKey(facts.sessionId, deps.dataKeys))) return undefined
  return { ...facts, number: facts.number + 1, resumed: true, presentedIds: [] }
}

async function startSession(
  request: FastifyRequest<{ Body: OpenBody }>,
  { tenant, deps, now }: SessionOptions,
): Promise<OpeningSession> {
  const { continuity, sdk } = request.body
  // The cookie comes first, because page scripts cannot change it.
  const tokens = [cookiePattern.exec(request.headers.cookie ?? '')?.[1], continuity]
  const ids = tokens.flatMap((token) =>
    token ? [openContinuityId(token, tenant, deps.keyring)] : [],
  )
  const presentedIds = [...new Set(ids.filter((id) => id !== undefined))]
  const sessionId = await deps.dataKeys.newSession()
  return {
    sessionId,
    createdAt: now,
    platform: sdk.platform,
    number: 1,
    continuityId: presentedIds[0] ?? firstContinuityId(deps.keyring.current, sessionId),
    resumed: false,
    presentedIds,
  }
}

function openDocument(
  { clientPublicKey }: OpenBody,
  options: OpenOptions & { session: OpeningSession; tenant: Tenant; now: number; bankPart: number },
): ServerDocument {
  const { session, tenant, deps, cache, now, bankPart } = options
  const { organizationId, environment } = tenant
  const scope = { organizationId, environment, sessionId: session.sessionId, clientPublicKey }
  const { createdAt, platform, number, continuityId } = session
  const facts = { createdAt, openedAt: now, platform, number, bankPart, continuityId }
  const documentId = sealDocumentId(facts, scope, deps)
  return createDocumentState({ documentId, scope, facts, master: deps.keyring.current }, cache)
}

function continuityScope({ organizationId, environment }: Tenant): string {
  return derivedId('cs', 'continuity-scope', organizationId, environment)
}

function responseOf(
  state: ServerDocument,
  options: { session: OpeningSession; challenges: Challenges; deps: CollectDeps; now: number },
): OpenResponse {
  const { session, challenges, deps, now } = options
  return {
    sessionId: session.sessionId,
    documentId: state.documentId,
    resumeToken: sealResumeToken(session, state.scope, deps),
    continuityScope: continuityScope(state.scope),
    sharedPostVersion,
    resumed: session.resumed,
    challenge: challenges.challenge,
    serverPublicKey: state.serverKeys.publicKey,
    nonce: issueNonce(state, { contents: { seq: 1, noBatchYet: true }, now }),
    timingNonce: challenges.timingNonce,
    canvasChallenge: canvasChallengeOf(challenges.canvasSeed),
    engineQuestions: session.platform === 'web' ? questionsOf(challenges.challenge) : [],
  }
}

const cookieName = '__Host-sid'
const cookiePattern = /(?:^|;\s*)__Host-sid=([A-Za-z0-9_-]{1,512})(?:;|$)/

/** Returns the Set-Cookie header of the continuity id. Partitioned, so it cannot track users across sites. */
export function continuityCookie(value: string): string {
  const maxAge = sessionLifetimeMs / 1000
  return `${cookieName}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; Secure; SameSite=None; Partitioned`
}
