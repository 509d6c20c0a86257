import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import { createPool } from '../../infra/postgres/pool.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import { recipientKeys } from '../../projections/organizations/queries.ts'
import { findDecisions } from '../../projections/sessions/queries.ts'
import { type Claims, claimPoolOptions, createClaims, createClaimTable } from '../collect/claims.ts'
import { createHandOff, createRecipients, type HandOff, type RecipientTenant } from '../collect/hand-off.ts'
import { countUnclaimed } from '../collect/metrics.ts'
import { collectRoutes } from '../collect/routes.ts'
import type { AccessControl } from './access.ts'
import type { Core } from './dependencies.ts'

/** Claims have connections of their own: every batch waits for one, and for nothing else in the database. */
export function openClaims(
  { databaseUrl, logger }: Core,
  { registry, undo }: { registry: Registry; undo: AsyncDisposableStack },
): Claims {
  const pool = createPool({ url: databaseUrl, ...claimPoolOptions })
  undo.defer(() => pool.end())
  return createClaims({ store: createClaimTable(pool), logger, onAlone: countUnclaimed(registry) })
}

interface CollectParts extends Core, Pick<AccessControl, 'auth'> {
  claims: Claims
}

export function addCollect(app: FastifyInstance, parts: CollectParts): HandOff {
  const { pool, keyring, random, applied, config, clock } = parts
  const findKeys = ({ organizationId, environment }: RecipientTenant) =>
    recipientKeys(pool, organizationId, environment)
  const handOff = createHandOff({
    findDecisions: (ids) => findDecisions(pool, ids),
    onDecided: (listener) => applied.onChange('sessions', listener),
    recipientHashes: createRecipients({ findKeys, keyring, clock }),
    seal: (sealing) => sealToken({ ...sealing, random }),
  })
  collectRoutes(app, {
    ...parts,
    checkRecipients: handOff.checkRecipients,
    sealResult: handOff.sealResult,
    batchIntervalMs: config.BATCH_INTERVAL_MS,
  })
  return handOff
}
