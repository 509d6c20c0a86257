import { printOutcome } from '../operator/operate.ts'
import { table } from '../operator/tables.ts'
import { createGateApi, persistently, type RegistryEntry } from './gate-api.ts'
import { serverUrl } from './settings.ts'

/** `tidegate signup list`: what there is to sign up for. */
export function listServices({ baseUrl, json }: { baseUrl?: string; json: boolean }): Promise<void> {
  return printOutcome({ json }, async () => {
    const api = createGateApi(await serverUrl(baseUrl))
    const services = await persistently(api.services)
    return { data: services, text: registryTable(services) }
  })
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
