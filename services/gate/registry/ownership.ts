import { createHmac } from 'node:crypto'
import { parse } from 'tldts'
import type { Keyring } from '../../../infra/crypto/keyring.ts'
import {
  agentTokenEnvName,
  envNameProblem,
  envPrefixOf,
  isEnvName,
  isUnderPrefix,
  systemServiceId,
} from '../../../infra/wire/gate.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { GateEnvVar } from '../../../schemas/events.ts'
import type { DomainReader } from '../context.ts'
import { ownablePrefix } from './well-known.ts'

/**
 * Returns the registrable domain by the public suffix list, such as `my-app.co.uk` for https://www.my-app.co.uk, and
 * its label, `my-app`. null for an IP address and for a public suffix.
 */
export function domainOf(website: string): { domain: string; label: string } | null {
  const { domain, domainWithoutSuffix: label } = parse(website, { allowPrivateDomains: true })
  return domain && label ? { domain, label } : null
}

/** Returns the variable prefix that the service owns through its verified domain; null if nothing is verified. */
export function verifiedPrefix({
  id,
  verified,
  verified_domain,
  definition,
}: Pick<GateServiceRow, 'id' | 'verified' | 'verified_domain' | 'definition'>): string | null {
  if (id === systemServiceId) return envPrefixOf(id)
  if (!verified && verified_domain === null) return null
  const website = verified_domain === null ? definition.website : `https://${verified_domain}`
  // A local service has no domain, so the operator verified its id.
  const { label, domain } = domainOf(website) ?? { label: id, domain: null }
  return ownablePrefix(label, domain)
}

/**
 * Ownership of a variable. verified: has the verified prefix, or belongs to Gate; service: has the service id as
 * prefix; refused: must never be written to an env file; other: any other name.
 */
type VariableGroup = 'verified' | 'service' | 'other' | 'refused'

/** Returns the variables that a signup for the service gets, including the agent token. */
export function variablesOf(
  service: Omit<GateServiceRow, 'organization_id'>,
): (GateEnvVar & { group: VariableGroup })[] {
  const { env_vars, dashboard_login_url } = service.definition
  const prefix = verifiedPrefix(service)
  const vars = env_vars.map((variable) => ({
    ...variable,
    group: groupOf(variable.key, service.id, prefix),
  }))
  if (dashboard_login_url === null) return vars
  const name = 'Agent token: asks for dashboard logins. You approve each.'
  return [...vars, { key: agentTokenEnvName(service.id), name, secret: true, group: 'verified' }]
}

function groupOf(key: string, serviceId: string, prefix: string | null): VariableGroup {
  if (!isEnvName(key) || envNameProblem(key, { serviceId, prefix })) return 'refused'
  if (isUnderPrefix(key, prefix)) return 'verified'
  return isUnderPrefix(key, envPrefixOf(serviceId)) ? 'service' : 'other'
}

export interface DomainClaim {
  organizationId: string
  serviceId: string
  domain: string
}

/** Returns the records that prove control of the domain. A token is valid for one organization, service and domain. */
export function domainChallenge(keyring: Keyring, claim: DomainClaim) {
  const [token] = challengeTokens(keyring, claim)
  return {
    dns: { name: `_tidegate.${claim.domain}`, type: 'TXT', value: txtValue(token) },
    file: { url: `https://${claim.domain}/.well-known/tidegate-verification.txt`, content: token },
  }
}

const txtValue = (token: string) => `tidegate-verification=${token}`

// Returns the token under each master key, current first, so that a published record stays valid after key rotation.
function challengeTokens({ current, all }: Keyring, claim: DomainClaim): [string, ...string[]] {
  const text = JSON.stringify([claim.organizationId, claim.serviceId, claim.domain])
  const token = (key: Keyring['current']) =>
    createHmac('sha256', key.secretKey('gate-domain-challenge')).update(text).digest('base64url')
  return [token(current), ...all.filter(({ id }) => id !== current.id).map(token)]
}

/** Looks up the challenge, and returns where the domain has it; undefined if nowhere. */
export async function findProof(
  reader: DomainReader,
  keyring: Keyring,
  claim: DomainClaim,
): Promise<'dns' | 'file' | undefined> {
  const { dns, file } = domainChallenge(keyring, claim)
  const tokens = challengeTokens(keyring, claim)
  const [records, text] = await Promise.all([reader.txtRecords(dns.name), reader.fileAt(file.url)])
  if (tokens.some((token) => records.includes(txtValue(token)))) return 'dns'
  const lines = text?.split(/\r?\n/).map((line) => line.trim()) ?? []
  return tokens.some((token) => lines.includes(token)) ? 'file' : undefined
}
