import { createHash } from 'node:crypto'
import type { Db } from '../../../infra/postgres/pool.ts'
import { listRegistry, registryVersion } from '../../../projections/gate/queries.ts'
import type { RegisteredService } from './registered.ts'
import { registryEntryJson } from './shapes.ts'
import { systemService } from './system-service.ts'

export interface RegistryList {
  /** As `registryVersion`. */
  version: string
  /** A JSON array of the entries, by id. */
  data: string
  /** Of `data`, whichever process made it. */
  etag: string
}

/**
 * The registry as it is now, whoever changed it. A look costs one query that reads no definition; the list is read and
 * written out again only when it is another, once for all who ask meanwhile.
 */
export function createRegistryList(
  db: Db,
  { publicUrl }: { publicUrl: string },
): () => Promise<RegistryList> {
  let kept: RegistryList | undefined
  let reading: Promise<RegistryList> | undefined

  async function read(): Promise<RegistryList> {
    const { version, services } = await listRegistry(db)
    kept = { version, ...written([systemService(publicUrl), ...services]) }
    return kept
  }

  return async () => {
    const version = await registryVersion(db)
    if (kept?.version === version) return kept
    reading ??= read().finally(() => {
      reading = undefined
    })
    const shared = await reading
    // One that began before this look may be of an earlier state.
    return shared.version === version ? shared : read()
  }
}

function written(services: RegisteredService[]): Pick<RegistryList, 'data' | 'etag'> {
  const data = JSON.stringify(services.toSorted(byId).map(registryEntryJson))
  const hash = createHash('sha256').update(data).digest('base64url').slice(0, 22)
  // Weak: each answer has a request id of its own.
  return { data, etag: `W/"${hash}"` }
}

// As Postgres does it, which sorts by code points; ids are ASCII.
const byId = (a: RegisteredService, b: RegisteredService): number => (a.id < b.id ? -1 : 1)
