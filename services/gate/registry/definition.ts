import { checkAll, checkEach, checkGiven } from '../../../infra/errors/check-all.ts'
import { isEnvName } from '../../../infra/wire/gate.ts'
import type {
  GateBranding,
  GateConsentLinks,
  GateEnvVar,
  GateSdk,
  GateServiceDefinition,
} from '../../../schemas/events.ts'
import {
  below,
  checkedServiceUrl,
  checkedText,
  type FieldMember,
  type FieldRules,
  refusedMember,
  serviceBounds,
} from './fields.ts'
import { refuseForbidden } from './forbidden.ts'

/** undefined = unchanged, null = cleared. */
export interface ServiceFields {
  name?: string | undefined
  description?: string | undefined
  website?: string | undefined
  webhook_endpoint_id?: string | undefined
  discoverable?: boolean | undefined
  dashboard_login_url?: string | null | undefined
  docs_url?: string | null | undefined
  env_vars?: readonly GateEnvVar[] | undefined
  sdks?: readonly GateSdk[] | undefined
  branding?: Given<GateBranding> | undefined
  consent?: Given<GateConsentLinks> | undefined
  claim_required?: boolean | undefined
  minimum_verdict?: MinimumVerdict | undefined
}

export type MinimumVerdict = 'inconclusive' | 'human'

type Required = 'name' | 'description' | 'website' | 'webhook_endpoint_id'
export type CompleteFields = ServiceFields & { [Name in Required]: string }

export type DefinitionChanges = Partial<GateServiceDefinition>

/** ApiError 422 naming the fields that do not fit, or the largest of too much. */
export function completeDefinition(fields: CompleteFields, rules: FieldRules): GateServiceDefinition {
  const { name, description, website, webhook_endpoint_id } = fields
  const unset = {
    discoverable: false,
    dashboard_login_url: null,
    docs_url: null,
    env_vars: [],
    sdks: [],
    branding: checkedBranding({}, { ...rules, field: 'branding' }),
    consent: checkedConsent({}, { ...rules, field: 'consent' }),
    claim_required: false,
    minimum_verdict: null,
  }
  const { said } = checkAll({
    said: () => checkedDefinition(fields, rules),
    allowed: () => refuseForbidden(fields, rules),
  })
  const definition = { name, description, website, webhook_endpoint_id, ...unset, ...said }
  refuseLarge(definition, rules)
  return definition
}

/** The fields that are given, normalised. ApiError 422 naming those that do not fit. */
export function checkedDefinition(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  const said = checkAll({
    texts: () => texts(fields, rules),
    links: () => links(fields, rules),
    parts: () => parts(fields, rules),
  })
  // Whether there is such an endpoint is decided with the service.
  const { webhook_endpoint_id, discoverable, claim_required, minimum_verdict } = fields
  return {
    ...said.texts,
    ...said.links,
    ...(webhook_endpoint_id !== undefined && { webhook_endpoint_id }),
    ...(discoverable !== undefined && { discoverable }),
    ...(claim_required !== undefined && { claim_required }),
    ...(minimum_verdict && { minimum_verdict: minimum_verdict === 'human' ? minimum_verdict : null }),
    ...said.parts,
  }
}

const memberOf = (rules: FieldRules, field: keyof ServiceFields): FieldMember => ({ ...rules, field })

function texts({ name, description }: ServiceFields, rules: FieldRules) {
  const ofName = { max: serviceBounds.name }
  const described = { max: serviceBounds.description, lines: serviceBounds.descriptionLines }
  return checkGiven<Pick<GateServiceDefinition, 'name' | 'description'>>({
    name: name !== undefined && (() => checkedText(name, memberOf(rules, 'name'), ofName)),
    description:
      description !== undefined &&
      (() => checkedText(description, memberOf(rules, 'description'), described)),
  })
}

type Links = Pick<GateServiceDefinition, 'website' | 'dashboard_login_url' | 'docs_url'>

function links({ website, dashboard_login_url, docs_url }: ServiceFields, rules: FieldRules) {
  const optional = (url: string | null, field: keyof Links) =>
    checkedOptional(url, memberOf(rules, field), checkedServiceUrl)
  return checkGiven<Links>({
    website: website !== undefined && (() => checkedServiceUrl(website, memberOf(rules, 'website'))),
    dashboard_login_url:
      dashboard_login_url !== undefined && (() => optional(dashboard_login_url, 'dashboard_login_url')),
    docs_url: docs_url !== undefined && (() => optional(docs_url, 'docs_url')),
  })
}

type Parts = Pick<GateServiceDefinition, 'env_vars' | 'sdks' | 'branding' | 'consent'>

function parts({ env_vars, sdks, branding, consent }: ServiceFields, rules: FieldRules) {
  return checkGiven<Parts>({
    env_vars: env_vars && (() => checkedEnvVars(env_vars, memberOf(rules, 'env_vars'))),
    sdks: sdks && (() => checkedSdks(sdks, memberOf(rules, 'sdks'))),
    branding: branding && (() => checkedBranding(branding, memberOf(rules, 'branding'))),
    consent: consent && (() => checkedConsent(consent, memberOf(rules, 'consent'))),
  })
}

const sizeOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

export function refuseLarge(
  definition: GateServiceDefinition,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (sizeOf(definition) <= serviceBounds.definitionBytes) return
  const members = Object.entries(definition).map(([field, value]) => ({ field, size: sizeOf(value) }))
  const [largest] = members.toSorted((a, b) => b.size - a.size)
  const expected = `less of it: a service has at most ${serviceBounds.definitionBytes} bytes of JSON in all`
  throw refusedMember({ field: largest?.field ?? 'body', parameterSet }, { issue: 'too_large', expected })
}

function checkedEnvVars(variables: readonly GateEnvVar[], list: FieldMember): GateEnvVar[] {
  refuseMany(variables, list, serviceBounds.envVars)
  const { checked } = checkAll({
    checked: () => checkEach(variables, (variable, i) => checkedEnvVar(variable, below(list, i))),
    once: () => refuseRepeated(variables, list),
  })
  return checked
}

function checkedEnvVar({ name, key, secret }: GateEnvVar, member: FieldMember): GateEnvVar {
  const checked = checkAll({
    name: () => checkedText(name, below(member, 'name'), { max: serviceBounds.envVarName }),
    key: () => checkedKey(key, below(member, 'key')),
  })
  return { ...checked, secret }
}

function checkedKey(key: string, member: FieldMember): string {
  if (!isEnvName(key)) {
    const expected = '1-128 letters, digits and _, not beginning with a digit'
    throw refusedMember(member, { issue: 'invalid', expected })
  }
  return key
}

// Without case, as Windows compares variables.
function refuseRepeated(variables: readonly GateEnvVar[], list: FieldMember): void {
  const seen = new Set<string>()
  checkEach(variables, ({ key }, i) => {
    const upper = key.toUpperCase()
    if (seen.has(upper))
      throw refusedMember(below(below(list, i), 'key'), { issue: 'repeated', expected: 'each key once' })
    seen.add(upper)
  })
}

const ofLabel = { max: serviceBounds.sdkLabel }
const ofInstall = { max: serviceBounds.sdkInstall, lines: serviceBounds.sdkInstallLines }

function checkedSdks(sdks: readonly GateSdk[], list: FieldMember): GateSdk[] {
  refuseMany(sdks, list, serviceBounds.sdks)
  return checkEach(sdks, ({ label, install, url }, i) => {
    const member = below(list, i)
    return checkAll({
      label: () => checkedText(label, below(member, 'label'), ofLabel),
      install: () => checkedText(install, below(member, 'install'), ofInstall),
      url: () => checkedServiceUrl(url, below(member, 'url')),
    })
  })
}

function refuseMany(entries: readonly unknown[], list: FieldMember, max: number): void {
  if (entries.length > max) throw refusedMember(list, { issue: 'too_many', expected: `at most ${max}` })
}

type Given<T> = { [Name in keyof T]?: NonNullable<T[Name]> | undefined }

function checkedBranding(given: Given<GateBranding>, member: FieldMember): GateBranding {
  const { logo_url, primary_color, secondary_color, ascii_art } = given
  return checkAll({
    logo_url: () => checkedOptional(logo_url, below(member, 'logo_url'), checkedServiceUrl),
    primary_color: () => checkedOptional(primary_color, below(member, 'primary_color'), checkedColor),
    secondary_color: () => checkedOptional(secondary_color, below(member, 'secondary_color'), checkedColor),
    ascii_art: () => checkedOptional(ascii_art, below(member, 'ascii_art'), checkedDrawing),
  })
}

function checkedConsent(given: Given<GateConsentLinks>, member: FieldMember): GateConsentLinks {
  return checkAll({
    terms_url: () => checkedOptional(given.terms_url, below(member, 'terms_url'), checkedServiceUrl),
    privacy_url: () => checkedOptional(given.privacy_url, below(member, 'privacy_url'), checkedServiceUrl),
  })
}

function checkedOptional(
  text: string | null | undefined,
  member: FieldMember,
  checked: (text: string, member: FieldMember) => string,
): string | null {
  return text === undefined || text === null ? null : checked(text, member)
}

function checkedColor(color: string, member: FieldMember): string {
  if (/^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.test(color)) return color
  throw refusedMember(member, { issue: 'invalid', expected: '#RGB, #RGBA, #RRGGBB or #RRGGBBAA' })
}

function checkedDrawing(drawing: string, member: FieldMember): string {
  const rule = { max: serviceBounds.asciiArt, lines: serviceBounds.asciiArtLines, untrimmed: true }
  return checkedText(drawing, member, rule)
}
