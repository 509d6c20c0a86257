import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { nullableCount, nullableFlag, nullableText } from './fingerprints.ts'

const coordinate = z.number().nullable()

const location = z.strictObject({
  city: nullableText,
  region: nullableText,
  country: nullableText,
  country_code: nullableText,
  latitude: coordinate,
  longitude: coordinate,
  timezone: nullableText,
  postal_code: nullableText,
  accuracy_radius_km: z.number().min(0).nullable(),
})

export const network = z
  .strictObject({
    ip_address: nullableText,
    ip_version: z.enum(['ipv4', 'ipv6']).nullable(),
    status: z.enum(['pending', 'ready', 'skipped', 'error']),
    summary: nullableText,
    location: location.nullable(),
    routing: z.strictObject({ asn: nullableText, organization: nullableText }),
    anonymity: z.strictObject({
      vpn: z.boolean(),
      proxy: z.boolean(),
      tor: z.boolean(),
      relay: z.boolean(),
      hosting: z.boolean(),
      residential_proxy: z.boolean(),
      callback_proxy: z.boolean(),
      provider: nullableText,
    }),
    reputation: z.strictObject({
      listed: z.boolean(),
      categories: z.array(z.string()),
      suspicious_network: z.boolean(),
    }),
    evidence: z.strictObject({
      risk_signals: z.array(z.string()),
      operator_tags: z.array(z.string()),
      client_types: z.array(z.string()),
      client_count: nullableCount,
    }),
    evaluated_at: timestamp.nullable(),
  })
  .meta({ id: 'SessionNetwork' })

const range = z.strictObject({ min: z.int(), max: z.int() })

const reference = z.strictObject({
  label: z.string(),
  source: z.string(),
  protocol: z.string(),
  tls_version: z.string(),
  sni: z.string(),
  alpn: z.string(),
  cipher_count: range,
  ext_count: range,
  sample_size: z.int(),
  verified: nullableFlag,
})

export const connectionFingerprint = z
  .strictObject({
    ja4: z.strictObject({
      hash: nullableText,
      profile: nullableText,
      family: nullableText,
      product: nullableText,
      confidence: nullableText,
      match_source: nullableText,
      deterministic: nullableFlag,
      reference: reference.nullable(),
    }),
    http2: z.strictObject({ akamai_fingerprint: nullableText, profile: nullableText }),
    user_agent_alignment: z.enum(['match', 'mismatch', 'unknown']).nullable(),
  })
  .meta({ id: 'SessionConnectionFingerprint' })
