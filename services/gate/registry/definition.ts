import type { z } from 'zod'
import { checkAll, checkEach, checkPresent } from '../../../infra/errors/check-all.ts'
import { isEnvName } from '../../../infra/wire/gate.ts'
import type {
  GateBranding,
  GateConsentLinks,
  GateEnvVar,
  GateSdk,
  GateServiceDefinition,
} from '../../../schemas/events.ts'
import {
  checkedServiceUrl,
  checkedText,
  child,
  defaults,
  type FieldMember,
  type FieldRules,
  invalidMember,
  serviceBounds,
} from './fields.ts'
import { refuseForbidden } from './forbidden.ts'
import type { createServiceBody, ServiceFields } from './schemas.ts'

export type CompleteFields = ServiceFields &
  Pick<
    z.output<typeof createServiceBody>,
    'name' | 'description' | 'website' | 'webhook_endpoint_id'
  >

/**
 * Returns a full definition with defaults. ApiError 422 naming the invalid fields, or the largest if it is too large.
 */
export function completeDefinition(
  fields: CompleteFields,
  rules: FieldRules,
): GateServiceDefinition {
  const { name, description, website, webhook_endpoint_id } = fields
  const { checked } = checkAll({
    checked: () => checkedDefinition(fields, rules),
    allowed: () => refuseForbidden(fields, rules),
  })
  const definition = { ...defaults, name, description, website, webhook_endpoint_id, ...checked }
  refuseLarge(definition, rules)
  return definition
}

/** Returns the given fields, normalized. ApiError 422 naming the invalid ones. */
export function checkedDefinition(
  fields: ServiceFields,
  rules: FieldRules,
): Partial<GateServiceDefinition> {
  const { name, description, website, dashboard_login_url, docs_url } = fields
  const { env_vars, sdks, branding, consent } = fields
  const { webhook_endpoint_id, discoverable, claim_required, minimum_verdict } = fields
  const member = (field: keyof ServiceFields): FieldMember => ({ ...rules, field })
  const descriptionRule = { max: serviceBounds.description, lines: serviceBounds.descriptionLines }
  return checkPresent<GateServiceDefinition>({
    name:
      name !== undefined && (() => checkedText(name, member('name'), { max: serviceBounds.name })),
    description:
      description !== undefined &&
      (() => checkedText(description, member('description'), descriptionRule)),
    website: website !== undefined && (() => checkedServiceUrl(website, member('website'))),
    dashboard_login_url:
      dashboard_login_url !== undefined &&
      (() => optionalUrl(dashboard_login_url, member('dashboard_login_url'))),
    docs_url: docs_url !== undefined && (() => optionalUrl(docs_url, member('docs_url'))),
    env_vars: env_vars && (() => checkedEnvVars(env_vars, member('env_vars'))),
    sdks: sdks && (() => checkedSdks(sdks, member('sdks'))),
    branding: branding && (() => checkedBranding(branding, member('branding'))),
    consent: consent && (() => checkedConsent(consent, member('consent'))),
    // The decision on the service checks that the endpoint exists.
    webhook_endpoint_id: webhook_endpoint_id !== undefined && (() => webhook_endpoint_id),
    discoverable: discoverable !== undefined && (() => discoverable),
    claim_required: claim_required !== undefined && (() => claim_required),
    minimum_verdict:
      minimum_verdict && (() => (minimum_verdict === 'human' ? minimum_verdict : null)),
  })
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

export function refuseLarge(
  definition: GateServiceDefinition,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (sizeOf(definition) <= serviceBounds.definitionBytes) return
  const members = Object.entries(definition).map(([field, value]) => ({
    field,
    size: sizeOf(value),
  }))
  const [largest] = members.toSorted((a, b) => b.size - a.size)
  const expected = `smaller: a service has at most ${serviceBounds.definitionBytes} bytes of JSON in all`
  throw invalidMember(
    { field: largest?.field ?? 'body', parameterSet },
    { issue: 'too_large', expected },
  )
}

function refuseTooMany(entries: readonly unknown[], list: FieldMember, max: number): void {
  if (entries.length > max)
    throw invalidMember(list, { issue: 'too_many', expected: `at most ${max}` })
}

function checkedEnvVars(variables: readonly GateEnvVar[], list: FieldMember): GateEnvVar[] {
  refuseTooMany(variables, list, serviceBounds.envVars)
  const { checked } = checkAll({
    checked: () => checkEach(variables, (variable, i) => checkedEnvVar(variable, child(list, i))),
    unique: () => refuseDuplicates(variables, list),
  })
  return checked
}

function checkedEnvVar({ name, key, secret }: GateEnvVar, member: FieldMember): GateEnvVar {
  const checked = checkAll({
    name: () => checkedText(name, child(member, 'name'), { max: serviceBounds.envVarName }),
    key: () => checkedKey(key, child(member, 'key')),
  })
  return { ...checked, secret }
}

function checkedKey(key: string, member: FieldMember): string {
  if (isEnvName(key)) return key
  const expected = '1-128 letters, digits and _, not beginning with a digit'
  throw invalidMember(member, { issue: 'invalid', expected })
}

// Ignores case, because variable names are case-insensitive on Windows.
function refuseDuplicates(variables: readonly GateEnvVar[], list: FieldMember): void {
  const seen = new Set<string>()
  checkEach(variables, ({ key }, i) => {
    const upper = key.toUpperCase()
    if (seen.has(upper))
      throw invalidMember(child(child(list, i), 'key'), {
        issue: 'repeated',
        expected: 'each key once',
      })
    seen.add(upper)
  })
}

function checkedSdks(sdks: readonly GateSdk[], list: FieldMember): GateSdk[] {
  refuseTooMany(sdks, list, serviceBounds.sdks)
  const installRule = { max: serviceBounds.sdkInstall, lines: serviceBounds.sdkInstallLines }
  return checkEach(sdks, ({ label, install, url }, i) => {
    const member = child(list, i)
    return checkAll({
      label: () => checkedText(label, child(member, 'label'), { max: serviceBounds.sdkLabel }),
      install: () => checkedText(install, child(member, 'install'), installRule),
      url: () => checkedServiceUrl(url, child(member, 'url')),
    })
  })
}

function checkedBranding(
  { logo_url, primary_color, secondary_color, ascii_art }: NonNullable<ServiceFields['branding']>,
  member: FieldMember,
): GateBranding {
  return checkAll({
    logo_url: () => optionalUrl(logo_url, child(member, 'logo_url')),
    primary_color: () => checkIfSet(primary_color, child(member, 'primary_color'), checkedColor),
    secondary_color: () =>
      checkIfSet(secondary_color, child(member, 'secondary_color'), checkedColor),
    ascii_art: () => checkIfSet(ascii_art, child(member, 'ascii_art'), checkedDrawing),
  })
}

function checkedConsent(
  { terms_url, privacy_url }: NonNullable<ServiceFields['consent']>,
  member: FieldMember,
): GateConsentLinks {
  return checkAll({
    terms_url: () => optionalUrl(terms_url, child(member, 'terms_url')),
    privacy_url: () => optionalUrl(privacy_url, child(member, 'privacy_url')),
  })
}

function checkIfSet(
  text: string | null | undefined,
  member: FieldMember,
  check: (text: string, member: FieldMember) => string,
): string | null {
  return text === undefined || text === null ? null : check(text, member)
}

const optionalUrl = (text: string | null | undefined, member: FieldMember) =>
  checkIfSet(text, member, checkedServiceUrl)

function checkedColor(color: string, member: FieldMember): string {
  if (/^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.test(color)) return color
  throw invalidMember(member, { issue: 'invalid', expected: '#RGB, #RGBA, #RRGGBB or #RRGGBBAA' })
}

function checkedDrawing(drawing: string, member: FieldMember): string {
  const rule = { max: serviceBounds.asciiArt, lines: serviceBounds.asciiArtLines, untrimmed: true }
  return checkedText(drawing, member, rule)
}
