import { z } from 'zod'
import { timestamp } from '../../../infra/http/schemas.ts'
import { count, flag, text } from './common.ts'

const coordinate = z.number().nullable()

const location = z.strictObject({
  city: text,
  region: text,
  country: text,
  country_code: text,
  latitude: coordinate,
  longitude: coordinate,
  timezone: text,
  postal_code: text,
  accuracy_radius_km: z.number().min(0).nullable(),
})

export const network = z
  .strictObject({
    ip_address: text,
    ip_version: z.enum(['ipv4', 'ipv6']).nullable(),
    status: z.enum(['pending', 'ready', 'skipped', 'error']),
    summary: text,
    location: location.nullable(),
    routing: z.strictObject({ asn: text, organization: text }),
    anonymity: z.strictObject({
      vpn: z.boolean(),
      proxy: z.boolean(),
      tor: z.boolean(),
      relay: z.boolean(),
      hosting: z.boolean(),
      residential_proxy: z.boolean(),
      callback_proxy: z.boolean(),
      provider: text,
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
      client_count: count,
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
  verified: flag,
})

export const connectionFingerprint = z
  .strictObject({
    ja4: z.strictObject({
      hash: text,
      profile: text,
      family: text,
      product: text,
      confidence: text,
      match_source: text,
      deterministic: flag,
      reference: reference.nullable(),
    }),
    http2: z.strictObject({ akamai_fingerprint: text, profile: text }),
    user_agent_alignment: z.enum(['match', 'mismatch', 'unknown']).nullable(),
  })
  .meta({ id: 'SessionConnectionFingerprint' })
