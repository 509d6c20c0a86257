import type { GateServiceRow } from '../../../../projections/gate/tables.ts'
import type { EndpointRow } from '../../../../projections/webhooks/tables.ts'
import type { GateServiceDefinition } from '../../../../schemas/events.ts'
import { now } from '../../../support/gate-rows.ts'
import { organizationId } from '../../../support/organization-rows.ts'
import { endpointId, endpoint as resultsEndpoint } from '../../webhooks/endpoints/given.ts'

export const eventId = `evt_${'4'.repeat(26)}`

/** An active endpoint of the live environment that is told of approvals. */
export const endpoint: EndpointRow = {
  ...resultsEndpoint,
  name: 'Approvals',
  url: 'https://acme.example/hooks',
  event_types: ['gate.session.approved'],
  secrets: [],
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
  claim_required: false,
  minimum_verdict: null,
}

/** An active service of the live environment. */
export const service: GateServiceRow = {
  id: 'acme-mail',
  organization_id: organizationId,
  environment: 'live',
  status: 'active',
  verified: false,
  verified_domain: null,
  definition,
  created_at: 1,
  updated_at: 1,
}

export const path = { organizationId, environment: 'live', serviceId: 'acme-mail' } as const
export const meta = { eventId, time: now, organizationId, environment: 'live' }
export const about = {
  service_id: 'acme-mail',
  organization_id: organizationId,
  environment: 'live',
}
