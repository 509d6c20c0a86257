import {
  isCriticalEnvName,
  isEnvName,
  isGateManagedEnvName,
  isOperatorEnvName,
} from '../../../infra/wire/gate.ts'
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
import { imitatesMark, isOfOneWriting } from './names.ts'

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
}

type Required = 'name' | 'description' | 'website' | 'webhook_endpoint_id'
export type CompleteFields = ServiceFields & { [Name in Required]: string }

export type DefinitionChanges = Partial<GateServiceDefinition>

/** ApiError 422 naming the field that does not fit, or the largest of too much. */
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
  }
  const said = checkedDefinition(fields, rules)
  refuseForbidden(said, rules)
  const definition = { name, description, website, webhook_endpoint_id, ...unset, ...said }
  refuseLarge(definition, rules)
  return definition
}

/** The fields that are given, normalised. ApiError 422 naming the one that does not fit. */
export function checkedDefinition(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  return { ...texts(fields, rules), ...links(fields, rules), ...parts(fields, rules) }
}

const memberOf = (rules: FieldRules, field: keyof ServiceFields): FieldMember => ({ ...rules, field })

function texts({ name, description }: ServiceFields, rules: FieldRules): DefinitionChanges {
  const described = { max: serviceBounds.description, lines: serviceBounds.descriptionLines }
  return {
    ...(name !== undefined && {
      name: checkedText(name, memberOf(rules, 'name'), { max: serviceBounds.name }),
    }),
    ...(description !== undefined && {
      description: checkedText(description, memberOf(rules, 'description'), described),
    }),
  }
}

function links(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  const { website, dashboard_login_url, docs_url } = fields
  return {
    ...(website !== undefined && { website: checkedServiceUrl(website, memberOf(rules, 'website')) }),
    ...(dashboard_login_url !== undefined && {
      dashboard_login_url: checkedOptional(
        dashboard_login_url,
        memberOf(rules, 'dashboard_login_url'),
        checkedServiceUrl,
      ),
    }),
    ...(docs_url !== undefined && {
      docs_url: checkedOptional(docs_url, memberOf(rules, 'docs_url'), checkedServiceUrl),
    }),
  }
}

function parts(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  const { webhook_endpoint_id, discoverable, env_vars, sdks, branding, consent } = fields
  return {
    // Whether there is such an endpoint is decided with the service.
    ...(webhook_endpoint_id !== undefined && { webhook_endpoint_id }),
    ...(discoverable !== undefined && { discoverable }),
    ...(env_vars && { env_vars: checkedEnvVars(env_vars, memberOf(rules, 'env_vars')) }),
    ...(sdks && { sdks: checkedSdks(sdks, memberOf(rules, 'sdks')) }),
    ...(branding && { branding: checkedBranding(branding, memberOf(rules, 'branding')) }),
    ...(consent && { consent: checkedConsent(consent, memberOf(rules, 'consent')) }),
  }
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
  const checked = variables.map(({ name, key, secret }, i) => {
    const member = below(list, i)
    const shown = checkedText(name, below(member, 'name'), { max: serviceBounds.envVarName })
    return { name: shown, key: checkedKey(key, below(member, 'key')), secret }
  })
  refuseRepeated(checked, list)
  return checked
}

function checkedKey(key: string, member: FieldMember): string {
  if (!isEnvName(key)) {
    const expected = '1-128 letters, digits and _, not beginning with a digit'
    throw refusedMember(member, { issue: 'invalid', expected })
  }
  return key
}

interface Known extends Pick<FieldRules, 'parameterSet'> {
  /** What the service has already, which stays. */
  registered?: GateServiceDefinition
}

/** ApiError 422 naming the first member that is new to the service and that no service may have. */
export function refuseForbidden({ name, env_vars = [] }: DefinitionChanges, known: Known): void {
  const { parameterSet, registered } = known
  if (name !== undefined && name !== registered?.name) refuseMisleading(name, known)
  const keys = new Set(registered?.env_vars.map(({ key }) => key))
  for (const [i, { key }] of env_vars.entries()) {
    const expected = keys.has(key) ? undefined : allowedInstead(key)
    if (expected === undefined) continue
    throw refusedMember({ field: `env_vars.${i}.key`, parameterSet }, { issue: 'not_allowed', expected })
  }
}

function refuseMisleading(name: string, { parameterSet }: Known): void {
  const member = { field: 'name', parameterSet }
  if (!isOfOneWriting(name)) {
    const expected = 'letters of one script, or of scripts that are written together'
    throw refusedMember(member, { issue: 'invalid', expected })
  }
  if (!imitatesMark(name)) return
  throw refusedMember(member, { issue: 'not_allowed', expected: 'no check mark, and not Tidegate' })
}

function allowedInstead(key: string): string | undefined {
  if (isCriticalEnvName(key)) return 'a variable that changes nothing of what a process runs'
  if (isOperatorEnvName(key)) return 'a variable that does not begin with TIDEGATE_'
  return isGateManagedEnvName(key) ? 'a variable that Gate does not set itself' : undefined
}

// Without case, as Windows compares variables.
function refuseRepeated(variables: readonly GateEnvVar[], list: FieldMember): void {
  const seen = new Set<string>()
  for (const [i, { key }] of variables.entries()) {
    const upper = key.toUpperCase()
    if (seen.has(upper))
      throw refusedMember(below(below(list, i), 'key'), { issue: 'repeated', expected: 'each key once' })
    seen.add(upper)
  }
}

function checkedSdks(sdks: readonly GateSdk[], list: FieldMember): GateSdk[] {
  refuseMany(sdks, list, serviceBounds.sdks)
  return sdks.map(({ label, install, url }, i) => {
    const member = below(list, i)
    return {
      label: checkedText(label, below(member, 'label'), { max: serviceBounds.sdkLabel }),
      install: checkedText(install, below(member, 'install'), {
        max: serviceBounds.sdkInstall,
        lines: serviceBounds.sdkInstallLines,
      }),
      url: checkedServiceUrl(url, below(member, 'url')),
    }
  })
}

function refuseMany(entries: readonly unknown[], list: FieldMember, max: number): void {
  if (entries.length > max) throw refusedMember(list, { issue: 'too_many', expected: `at most ${max}` })
}

type Given<T> = { [Name in keyof T]?: NonNullable<T[Name]> | undefined }

function checkedBranding(given: Given<GateBranding>, member: FieldMember): GateBranding {
  const { logo_url, primary_color, secondary_color, ascii_art } = given
  return {
    logo_url: checkedOptional(logo_url, below(member, 'logo_url'), checkedServiceUrl),
    primary_color: checkedOptional(primary_color, below(member, 'primary_color'), checkedColor),
    secondary_color: checkedOptional(secondary_color, below(member, 'secondary_color'), checkedColor),
    ascii_art: checkedOptional(ascii_art, below(member, 'ascii_art'), checkedDrawing),
  }
}

function checkedConsent(given: Given<GateConsentLinks>, member: FieldMember): GateConsentLinks {
  return {
    terms_url: checkedOptional(given.terms_url, below(member, 'terms_url'), checkedServiceUrl),
    privacy_url: checkedOptional(given.privacy_url, below(member, 'privacy_url'), checkedServiceUrl),
  }
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
