import type {
  GateBranding,
  GateConsentLinks,
  GateEnvVar,
  GateSdk,
  GateServiceDefinition,
} from '../../../../schemas/events.ts'
import { refuseLarge } from '../definition-size.ts'
import { bounds } from './bounds.ts'
import { checkedEnvVars, checkedSdks } from './checked-lists.ts'
import { checkedBranding, checkedConsent, type Given, optional } from './checked-looks.ts'
import { checkedText } from './checked-text.ts'
import { checkedUrl } from './checked-url.ts'
import type { FieldRules, Member } from './refused.ts'

/** What an organization says about a service; undefined = not said, null = to be cleared. */
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
/** Of a new service. */
export type CompleteFields = ServiceFields & { [Name in Required]: string }

/** Checked fields, normalised: as much of a definition as was said. */
export type DefinitionChanges = Partial<GateServiceDefinition>

/** The definition of a new service. 422 naming the member that does not fit, or the largest of too much. */
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
  const definition = { name, description, website, webhook_endpoint_id, ...unset, ...said }
  refuseLarge(definition, rules)
  return definition
}

/** As much of a definition as is said; lists and objects as a whole. 422 naming the member that does not fit. */
export function checkedDefinition(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  return { ...texts(fields, rules), ...links(fields, rules), ...parts(fields, rules) }
}

const memberOf = (rules: FieldRules, field: keyof ServiceFields): Member => ({ ...rules, field })

function texts({ name, description }: ServiceFields, rules: FieldRules): DefinitionChanges {
  const described = { max: bounds.description, lines: bounds.descriptionLines }
  return {
    ...(name !== undefined && { name: checkedText(name, memberOf(rules, 'name'), { max: bounds.name }) }),
    ...(description !== undefined && {
      description: checkedText(description, memberOf(rules, 'description'), described),
    }),
  }
}

function links(fields: ServiceFields, rules: FieldRules): DefinitionChanges {
  const { website, dashboard_login_url, docs_url } = fields
  return {
    ...(website !== undefined && { website: checkedUrl(website, memberOf(rules, 'website')) }),
    ...(dashboard_login_url !== undefined && {
      dashboard_login_url: optional(dashboard_login_url, memberOf(rules, 'dashboard_login_url'), checkedUrl),
    }),
    ...(docs_url !== undefined && { docs_url: optional(docs_url, memberOf(rules, 'docs_url'), checkedUrl) }),
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
