import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { loadLiveOffsets } from '../../infra/event-store/builds.ts'
import type { Position, Topic } from '../../infra/log/port.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { cachedFor } from '../../infra/timing.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import { recipientKeys } from '../../projections/organizations/queries.ts'
import { findDecisions } from '../../projections/sessions/queries.ts'
import { decisionRowOf } from '../../projections/sessions/stored-event.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type Admission, createSessionAdmission } from '../collect/admission.ts'
import { watchBacklog } from '../collect/backlog.ts'
import { type Claims, claimPoolOptions, createClaims, createClaimTable } from '../collect/claims.ts'
import { createRecipientCache, createResultSealer, type ResultSealer } from '../collect/hand-off.ts'
import {
  createDocumentCounter,
  createShedCounter,
  registerAdmissionGauges,
} from '../collect/metrics.ts'
import { collectRoutes } from '../collect/routes.ts'
import type { Tenant } from '../collect/sealed-ids.ts'
import type { VolumeLimits } from '../collect/volume.ts'
import { readOffsets } from '../scoring/store.ts'
import type { AccessControl } from './access.ts'
import type { Core } from './dependencies.ts'
import type { LocalDecisions } from './local-decisions.ts'

interface OpenParts {
  registry: Registry
  undo: AsyncDisposableStack
}

export type CollectRouteParts = ReturnType<typeof openCollect> &
  Pick<VolumeLimits, 'missingProxy' | 'exemptsLoopback'> & { localDecisions: LocalDecisions }

export function openCollect(core: Core, parts: OpenParts) {
  return {
    claims: openClaims(core, parts.undo),
    admission: openAdmission(core, parts),
    recipients: openRecipientCache(core, parts.undo),
    countDocument: createDocumentCounter(parts.registry),
  }
}

// Uses a separate pool, because every batch waits for its claim.
function openClaims({ databaseUrl }: Core, undo: AsyncDisposableStack): Claims {
  const pool = createPool({ url: databaseUrl, ...claimPoolOptions })
  undo.defer(() => pool.end())
  return createClaims(createClaimTable(pool))
}

// Entries are dropped when keys of the organization are issued or revoked.
export function openRecipientCache(
  { pool, keyring, clock, applied }: Core,
  undo: AsyncDisposableStack,
) {
  const recipients = createRecipientCache({
    findKeys: ({ organizationId, environment }: Tenant) =>
      recipientKeys(pool, organizationId, environment),
    keyring,
    clock,
  })
  undo.defer(applied.onChange('organizations', recipients.forget))
  return recipients
}

export function openAdmission(core: Core, { registry, undo }: OpenParts): Admission {
  const { config, random, log, pool, logger, applied } = core
  const { BatchReceived: received, SessionScored: scored } = eventTopics
  const { ages, stop } = watchBacklog({
    stages: [
      { ...rangeOf(log, received), committed: () => readOffsets(pool, received) },
      { ...rangeOf(log, scored), committed: () => visibleDecisionOffsets(pool) },
    ],
    // Debug level, because claims and appends already report an outage.
    onError: (err) =>
      logger.debug({ err }, 'failed to read the scoring backlog; admitting all sessions'),
  })
  undo.defer(stop)
  const admission = createSessionAdmission({
    readAges: ages,
    random,
    onShed: createShedCounter(registry),
    maxBacklogMs: config.COLLECT_MAX_BACKLOG_MS,
    maxInFlight: config.COLLECT_MAX_IN_FLIGHT,
  })
  undo.defer(
    applied.onChange('sessions', (decisionIds) =>
      admission.pendingSessions.onDecided(decisionIds ?? []),
    ),
  )
  registerAdmissionGauges(registry, { ages, inFlight: admission.inFlight })
  return admission
}

// Caches first positions, because they only change when records expire. Ends are read four times a second.
const rangeOf = (log: Core['log'], topic: Topic) => ({
  starts: cachedFor(5000, () => log.firstPositions(topic)),
  ends: () => log.endPositions(topic),
})

async function visibleDecisionOffsets(pool: Core['pool']): Promise<Position[]> {
  const positions = await loadLiveOffsets(pool, 'sessions')
  return positions.filter(({ topic }) => topic === eventTopics.SessionScored)
}

interface CollectParts extends Core, Pick<AccessControl, 'auth'>, CollectRouteParts {
  publicUrl: string
}

export function addCollect(app: FastifyInstance, parts: CollectParts): ResultSealer {
  const { pool, random, applied, config, publicUrl, recipients, localDecisions } = parts
  const resultSealer = createResultSealer({
    async findDecisions(ids) {
      const local = localDecisions.take(ids).map(decisionRowOf)
      const missing = ids.filter((id) => !local.some(({ event_id }) => event_id === id))
      return missing.length > 0 ? [...local, ...(await findDecisions(pool, missing))] : local
    },
    onDecided: (listener) => applied.onChange('sessions', listener),
    recipientHashes: recipients.secretHashesOf,
    seal: (sealing) => sealToken({ ...sealing, random }),
    timeoutMs: config.HAND_OFF_TIMEOUT_MS,
  })
  collectRoutes(app, {
    ...parts,
    requireRecipients: resultSealer.requireRecipients,
    sealResult: resultSealer.sealResult,
    sourceMbPerHour: config.COLLECT_SOURCE_MB_PER_HOUR,
    organizationMbPerHour: config.COLLECT_ORGANIZATION_MB_PER_HOUR,
    batchIntervalMs: config.BATCH_INTERVAL_MS,
    handOffTimeoutMs: config.HAND_OFF_TIMEOUT_MS,
    signatures: {
      baseUrls: [publicUrl, ...config.FIRST_PARTY_URLS],
      maxLifetimeMs: config.SIGNATURE_MAX_SECONDS * 1000,
    },
  })
  return resultSealer
}
