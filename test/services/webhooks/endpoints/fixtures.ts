import { randomBytes } from 'node:crypto'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import { asId } from '../../../../infra/ids.ts'
import { createAddressRules } from '../../../../infra/safe-http/addresses.ts'
import type { OrganizationRow } from '../../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../../projections/webhooks/tables.ts'
import { organization, organizationId } from '../../../support/organization-rows.ts'

export const now = 1_800_000_000_000
export const publicOnly = createAddressRules([])
export const keyring = createKeyring(randomBytes(32).toString('base64'))
export const endpointId = asId('we', `we_${'2'.repeat(32)}`)

export { organization, organizationId } from '../../../support/organization-rows.ts'

export const suspended: OrganizationRow = { ...organization, status: 'suspended' }

export const endpoint: EndpointRow = {
  id: endpointId,
  organization_id: organizationId,
  environment: 'live',
  name: 'Shop',
  url: 'https://shop.example/hooks',
  event_types: ['session.result.persisted'],
  filter: null,
  status: 'active',
  disabled_reason: null,
  flagged_reason: null,
  secrets: [{ sealed: Buffer.from('first'), created_at: 1, expires_at: null }],
  created_at: 1,
  updated_at: 1,
  target_since: 1,
}
export const disabled: EndpointRow = { ...endpoint, status: 'disabled', disabled_reason: 'manual' }
