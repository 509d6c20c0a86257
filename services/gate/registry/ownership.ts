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
import { ownPrefix } from './well-known.ts'

/**
 * The registrable domain by the public suffix list, such as `my-app.co.uk` of https://www.my-app.co.uk, and its label,
 * `my-app`. null for an address, and for a name under which anybody may have one.
 */
export function domainOf(website: string): { domain: string; label: string } | null {
  const { domain, domainWithoutSuffix: label } = parse(website, { allowPrivateDomains: true })
  return domain && label ? { domain, label } : null
}

/** What variables begin with that are the service's own, by the name of its verified domain. null = not verified. */
export function ownedPrefix({
  id,
  verified,
  verified_domain,
  definition,
}: Pick<GateServiceRow, 'id' | 'verified' | 'verified_domain' | 'definition'>): string | null {
  if (id === systemServiceId) return envPrefixOf(id)
  if (!verified && verified_domain === null) return null
  const found = domainOf(
    verified_domain === null ? definition.website : `https://${verified_domain}`,
  )
  // A service of this machine has no domain, so the operator verified its id.
  return found ? ownPrefix(found.label, found.domain) : ownPrefix(id, null)
}

/**
 * Who owns a variable. verified: under the name that is verified, or Gate's own; service: named after the service's id;
 * refused: no tool writes it.
 */
type VariableGroup = 'verified' | 'service' | 'other' | 'refused'

/** What whoever signs up for the service gets, with the agent token. */
export function variablesOf(
  service: Omit<GateServiceRow, 'organization_id'>,
): (GateEnvVar & { group: VariableGroup })[] {
  const { env_vars, dashboard_login_url } = service.definition
  const prefix = ownedPrefix(service)
  const own = env_vars.map((variable) => ({
    ...variable,
    group: groupOf(variable.key, service.id, prefix),
  }))
  if (dashboard_login_url === null) return own
  const name = 'Agent token: asks for dashboard logins. You approve each.'
  return [...own, { key: agentTokenEnvName(service.id), name, secret: true, group: 'verified' }]
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

/** What the holder of a domain publishes. A token is good for one organization, service and domain. */
export function domainChallenge(keyring: Keyring, claim: DomainClaim) {
  const [token] = challengeTokens(keyring, claim)
  return {
    dns: { name: `_tidegate.${claim.domain}`, type: 'TXT', value: txtValue(token) },
    file: { url: `https://${claim.domain}/.well-known/tidegate-verification.txt`, content: token },
  }
}

const txtValue = (token: string) => `tidegate-verification=${token}`

// Under each master key, the current first, so that a record stays good when a new key is put in front.
function challengeTokens({ current, all }: Keyring, claim: DomainClaim): [string, ...string[]] {
  const text = JSON.stringify([claim.organizationId, claim.serviceId, claim.domain])
  const token = (key: Keyring['current']) =>
    createHmac('sha256', key.secretKey('gate-domain-challenge')).update(text).digest('base64url')
  return [token(current), ...all.filter(({ id }) => id !== current.id).map(token)]
}

/** Where the domain has the challenge; undefined where it has none. */
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
