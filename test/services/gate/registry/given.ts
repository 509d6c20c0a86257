import { asId } from '../../../../infra/ids.ts'
import type { GateServiceRow } from '../../../../projections/gate/rows.ts'
import type { EndpointRow } from '../../../../projections/webhooks/rows.ts'
import type { GateServiceDefinition } from '../../../../schemas/events.ts'
import { organizationId } from '../../organizations/given.ts'

export const now = 1_800_000_000_000
export const eventId = `evt_${'4'.repeat(26)}`
const endpointId = asId('we', `we_${'2'.repeat(32)}`)

/** An active endpoint of the live environment that is told of approvals. */
export const endpoint: EndpointRow = {
  id: endpointId,
  organization_id: organizationId,
  environment: 'live',
  name: 'Approvals',
  url: 'https://acme.example/hooks',
  event_types: ['gate.session.approved'],
  status: 'active',
  disabled_reason: null,
  flagged_reason: null,
  secrets: [],
  created_at: 1,
  updated_at: 1,
  target_since: 1,
}

export const definition: GateServiceDefinition = {
  name: 'Acme Mail',
  description: 'Mail for agents.',
  website: 'https://acme.example',
  discoverable: true,
  webhook_endpoint_id: endpointId,
  dashboard_login_url: null,
  docs_url: null,
  env_vars: [],
  sdks: [],
  branding: { logo_url: null, primary_color: null, secondary_color: null, ascii_art: null },
  consent: { terms_url: null, privacy_url: null },
}

/** An active service of the live environment. */
export const service: GateServiceRow = {
  id: 'acme-mail',
  organization_id: organizationId,
  environment: 'live',
  status: 'active',
  verified: false,
  definition,
  created_at: 1,
  updated_at: 1,
}

export const path = { organizationId, environment: 'live', serviceId: 'acme-mail' } as const
export const meta = { eventId, time: now, organizationId, environment: 'live' }
export const about = { service_id: 'acme-mail', organization_id: organizationId, environment: 'live' }
