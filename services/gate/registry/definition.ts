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
  type FieldRules,
  fieldError,
  nested,
  type ServiceField,
  serviceBounds,
  serviceDefaults,
} from './fields.ts'
import { refuseForbiddenValues } from './forbidden.ts'
import type { createServiceBody, ServiceFields } from './schemas.ts'

export type CompleteFields = ServiceFields &
  Pick<
    z.output<typeof createServiceBody>,
    'name' | 'description' | 'website' | 'webhook_endpoint_id'
  >

/**
 * Returns the definition of a new service, with defaults. Throws 422 naming the invalid fields, or the largest field if
 * the definition is too large.
 */
export function checkedNewDefinition(
  fields: CompleteFields,
  rules: FieldRules,
): GateServiceDefinition {
  const { name, description, website, webhook_endpoint_id } = fields
  const { checked } = checkAll({
    checked: () => checkedServiceFields(fields, rules),
    allowed: () => refuseForbiddenValues(fields, rules),
  })
  const required = { name, description, website, webhook_endpoint_id }
  const definition = { ...serviceDefaults, ...required, ...checked }
  refuseTooLarge(definition, rules)
  return definition
}

/** Returns the fields that are present, normalized. Throws 422 naming the invalid ones. */
export function checkedServiceFields(
  fields: ServiceFields,
  rules: FieldRules,
): Partial<GateServiceDefinition> {
  const { name, description, website, dashboard_login_url, docs_url } = fields
  const { env_vars, sdks, branding, consent } = fields
  const { webhook_endpoint_id, discoverable, claim_required, minimum_verdict } = fields
  const member = (field: keyof ServiceFields): ServiceField => ({ ...rules, field })
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
    // registry/decide.ts checks that the endpoint exists.
    webhook_endpoint_id: webhook_endpoint_id !== undefined && (() => webhook_endpoint_id),
    discoverable: discoverable !== undefined && (() => discoverable),
    claim_required: claim_required !== undefined && (() => claim_required),
    minimum_verdict:
      minimum_verdict && (() => (minimum_verdict === 'human' ? minimum_verdict : null)),
  })
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Throws 422 naming the largest field if the definition is too large. */
export function refuseTooLarge(
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
  throw fieldError(
    { field: largest?.field ?? 'body', parameterSet },
    { issue: 'too_large', expected },
  )
}

function refuseTooMany(entries: readonly unknown[], list: ServiceField, max: number): void {
  if (entries.length > max)
    throw fieldError(list, { issue: 'too_many', expected: `at most ${max}` })
}

function checkedEnvVars(variables: readonly GateEnvVar[], list: ServiceField): GateEnvVar[] {
  refuseTooMany(variables, list, serviceBounds.envVars)
  const { checked } = checkAll({
    checked: () => checkEach(variables, (variable, i) => checkedEnvVar(variable, nested(list, i))),
    unique: () => refuseDuplicates(variables, list),
  })
  return checked
}

function checkedEnvVar({ name, key, secret }: GateEnvVar, member: ServiceField): GateEnvVar {
  const checked = checkAll({
    name: () => checkedText(name, nested(member, 'name'), { max: serviceBounds.envVarName }),
    key: () => checkedKey(key, nested(member, 'key')),
  })
  return { ...checked, secret }
}

function checkedKey(key: string, member: ServiceField): string {
  if (isEnvName(key)) return key
  const expected = '1-128 letters, digits and _, not beginning with a digit'
  throw fieldError(member, { issue: 'invalid', expected })
}

// Ignores case, as Windows does for variable names.
function refuseDuplicates(variables: readonly GateEnvVar[], list: ServiceField): void {
  const seen = new Set<string>()
  checkEach(variables, ({ key }, i) => {
    const upper = key.toUpperCase()
    if (seen.has(upper))
      throw fieldError(nested(nested(list, i), 'key'), {
        issue: 'repeated',
        expected: 'each key once',
      })
    seen.add(upper)
  })
}

function checkedSdks(sdks: readonly GateSdk[], list: ServiceField): GateSdk[] {
  refuseTooMany(sdks, list, serviceBounds.sdks)
  const installRule = { max: serviceBounds.sdkInstall, lines: serviceBounds.sdkInstallLines }
  return checkEach(sdks, ({ label, install, url }, i) => {
    const member = nested(list, i)
    return checkAll({
      label: () => checkedText(label, nested(member, 'label'), { max: serviceBounds.sdkLabel }),
      install: () => checkedText(install, nested(member, 'install'), installRule),
      url: () => checkedServiceUrl(url, nested(member, 'url')),
    })
  })
}

function checkedBranding(
  { logo_url, primary_color, secondary_color, ascii_art }: NonNullable<ServiceFields['branding']>,
  member: ServiceField,
): GateBranding {
  return checkAll({
    logo_url: () => optionalUrl(logo_url, nested(member, 'logo_url')),
    primary_color: () => checkIfSet(primary_color, nested(member, 'primary_color'), checkedColor),
    secondary_color: () =>
      checkIfSet(secondary_color, nested(member, 'secondary_color'), checkedColor),
    ascii_art: () => checkIfSet(ascii_art, nested(member, 'ascii_art'), checkedAsciiArt),
  })
}

function checkedConsent(
  { terms_url, privacy_url }: NonNullable<ServiceFields['consent']>,
  member: ServiceField,
): GateConsentLinks {
  return checkAll({
    terms_url: () => optionalUrl(terms_url, nested(member, 'terms_url')),
    privacy_url: () => optionalUrl(privacy_url, nested(member, 'privacy_url')),
  })
}

function checkIfSet(
  text: string | null | undefined,
  member: ServiceField,
  check: (text: string, member: ServiceField) => string,
): string | null {
  return text === undefined || text === null ? null : check(text, member)
}

const optionalUrl = (text: string | null | undefined, member: ServiceField) =>
  checkIfSet(text, member, checkedServiceUrl)

function checkedColor(color: string, member: ServiceField): string {
  if (/^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.test(color)) return color
  throw fieldError(member, { issue: 'invalid', expected: '#RGB, #RGBA, #RRGGBB or #RRGGBBAA' })
}

function checkedAsciiArt(asciiArt: string, member: ServiceField): string {
  const rule = { max: serviceBounds.asciiArt, lines: serviceBounds.asciiArtLines, untrimmed: true }
  return checkedText(asciiArt, member, rule)
}
