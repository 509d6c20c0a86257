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
import { ownableEnvPrefix } from './well-known.ts'

/**
 * Returns the registrable domain of a URL and its first label, such as `my-app.co.uk` and `my-app` for
 * https://www.my-app.co.uk. Returns null for an IP address or a public suffix.
 */
export function parseRegistrableDomain(website: string): { domain: string; label: string } | null {
  const { domain, domainWithoutSuffix: label } = parse(website, { allowPrivateDomains: true })
  return domain && label ? { domain, label } : null
}

/** Returns the prefix of variables that belong to the service; null unless it or its domain is verified. */
export function verifiedEnvPrefix({
  id,
  verified,
  verified_domain,
  definition,
}: Pick<GateServiceRow, 'id' | 'verified' | 'verified_domain' | 'definition'>): string | null {
  if (id === systemServiceId) return envPrefixOf(id)
  if (!verified && verified_domain === null) return null
  const website = verified_domain === null ? definition.website : `https://${verified_domain}`
  // A service on a local address has no domain, so its id counts as verified.
  const { label, domain } = parseRegistrableDomain(website) ?? { label: id, domain: null }
  return ownableEnvPrefix(label, domain)
}

/**
 * Ownership of a variable:
 * - verified: starts with the verified prefix, or belongs to Gate
 * - service: starts with the service's id
 * - refused: must never be written to an env file
 * - other: any other name
 */
type VariableGroup = 'verified' | 'service' | 'other' | 'refused'

/** Returns the variables that an agent receives with a signup for the service, including the agent token. */
export function signupVariablesOf(
  service: Omit<GateServiceRow, 'organization_id'>,
): (GateEnvVar & { group: VariableGroup })[] {
  const { env_vars, dashboard_login_url } = service.definition
  const prefix = verifiedEnvPrefix(service)
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

/** Returns the DNS record and the file, either of which proves control of the domain by this service. */
export function domainChallenge(keyring: Keyring, claim: DomainClaim) {
  const [token] = challengeTokens(keyring, claim)
  return {
    dns: { name: `_tidegate.${claim.domain}`, type: 'TXT', value: txtValue(token) },
    file: { url: `https://${claim.domain}/.well-known/tidegate-verification.txt`, content: token },
  }
}

const txtValue = (token: string) => `tidegate-verification=${token}`

// Derives a token from each master key, current first, so that a published challenge survives a rotation of the keys.
function challengeTokens({ current, all }: Keyring, claim: DomainClaim): [string, ...string[]] {
  const text = JSON.stringify([claim.organizationId, claim.serviceId, claim.domain])
  const token = (key: Keyring['current']) =>
    createHmac('sha256', key.secretKey('gate-domain-challenge')).update(text).digest('base64url')
  return [token(current), ...all.filter(({ id }) => id !== current.id).map(token)]
}

/** Looks for the challenge in DNS and in the file, and returns where it was found; undefined if it was not. */
export async function findDomainProof(
  reader: DomainReader,
  keyring: Keyring,
  claim: DomainClaim,
): Promise<'dns' | 'file' | undefined> {
  const { dns, file } = domainChallenge(keyring, claim)
  const tokens = challengeTokens(keyring, claim)
  const [records, text] = await Promise.all([reader.lookUpTxt(dns.name), reader.fileAt(file.url)])
  if (tokens.some((token) => records.includes(txtValue(token)))) return 'dns'
  const lines = text?.split(/\r?\n/).map((line) => line.trim()) ?? []
  return tokens.some((token) => lines.includes(token)) ? 'file' : undefined
}
