import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { isServiceId } from './fields/service-id.ts'
import { systemService, systemServiceId } from './system-service.ts'

/** A service that anyone can name: one of an organization, or the built-in one, which has no owner. */
export type RegisteredService = Omit<GateServiceRow, 'organization_id'> & { organization_id: string | null }

interface Named {
  serviceId: string
  publicUrl: string
}

/** The service, disabled and hidden ones too: a session stays usable after its service is disabled. */
export async function findRegistered(
  db: Db,
  { serviceId, publicUrl }: Named,
): Promise<RegisteredService | undefined> {
  if (serviceId === systemServiceId) return systemService(publicUrl)
  return isServiceId(serviceId) ? findService(db, serviceId) : undefined
}

/** The same of one that is known to be there, as that of a session is, whatever became of it. 503 while it is not readable. */
export async function serviceOf(db: Db, named: Named): Promise<RegisteredService> {
  const service = await findRegistered(db, named)
  if (!service) throw unavailable(new Error(`the service ${named.serviceId} is not readable`))
  return service
}

/** The service if anyone may sign up for it: 404 unless it is active and discoverable. */
export function openService(service: RegisteredService | undefined): RegisteredService {
  if (service?.status === 'active' && service.definition.discoverable) return service
  throw new ApiError('request.not_found', { message: 'No such service takes signups.' })
}

/** What the public registry shows of an id. 404 unless anyone may sign up for it and its organization is active. */
export async function findOpen(db: Db, named: Named): Promise<RegisteredService> {
  const service = await findRegistered(db, named)
  const owner = service?.organization_id ?? null
  const isServed = owner === null || (await findOrganization(db, owner))?.status === 'active'
  return openService(isServed ? service : undefined)
}
