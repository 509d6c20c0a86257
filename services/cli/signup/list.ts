import { ApiError } from '../../../infra/errors/errors.ts'
import { table } from '../operator/tables.ts'
import { type GateApi, persistently, type RegistryEntry } from './gate-api.ts'

/** `tidegate signup list`: what there is to sign up for, as text or as one line `{ "data": [...] }`. */
export async function listServices(api: GateApi, { json }: { json: boolean }): Promise<void> {
  const services = await persistently(api.services).catch((cause: unknown) => {
    if (!(cause instanceof ApiError && cause.status === 404)) throw cause
    const message = `${api.baseUrl} has no list of services: give the address of the server, without the path of a page.`
    throw new ApiError('request.not_found', { message, cause })
  })
  console.log(json ? JSON.stringify({ data: services }) : registryTable(services))
}

function registryTable(services: RegistryEntry[]): string {
  const head = ['id', 'name', 'verified', 'website', 'gives out', 'dashboard']
  return table(
    head,
    services.map(({ id, name, branding, website, env_vars, dashboard_login_url }) => [
      ...[id, name, branding.verified ? 'yes' : 'no', website],
      env_vars.map(({ key }) => key).join('\n') || null,
      dashboard_login_url ? 'yes' : 'no',
    ]),
  )
}
