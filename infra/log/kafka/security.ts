import { X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import type { KafkaConfig, OauthbearerProviderResponse } from 'kafkajs'
import { z } from 'zod'
import { type Config, readSettingFile } from '../../config.ts'

export type KafkaSecurity = Pick<KafkaConfig, 'ssl' | 'sasl'>

type Settings = Pick<
  Config,
  | 'KAFKA_SECURITY_PROTOCOL'
  | 'KAFKA_SSL_CA_FILE'
  | 'KAFKA_SSL_CERT_FILE'
  | 'KAFKA_SSL_KEY_FILE'
  | 'KAFKA_SASL_MECHANISM'
  | 'KAFKA_SASL_USERNAME'
  | 'KAFKA_SASL_PASSWORD'
  | 'KAFKA_SASL_OAUTH_TOKEN_URL'
  | 'KAFKA_SASL_OAUTH_SCOPE'
>

/** Returns the TLS and SASL options for kafkajs. Throws if settings contradict each other, and names them. */
export function kafkaSecurityOptions(settings: Settings): KafkaSecurity {
  const { KAFKA_SECURITY_PROTOCOL: protocol } = settings
  const [hasTls, hasSasl] = [protocol.endsWith('SSL'), protocol.startsWith('SASL')]
  return {
    ...(hasTls ? { ssl: tlsOptions(settings) } : refuseTls(settings)),
    ...(hasSasl ? saslOptions(settings) : refuseSasl(settings)),
  }
}

function tlsOptions(settings: Settings) {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = settings
  if ((cert === undefined) !== (key === undefined))
    throw new Error('KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE must be set together')
  const tls = {
    ...(ca && { ca: [readSettingFile('KAFKA_SSL_CA_FILE', ca)] }),
    ...(cert && { cert: readSettingFile('KAFKA_SSL_CERT_FILE', cert) }),
    ...(key && { key: readSettingFile('KAFKA_SSL_KEY_FILE', key) }),
  }
  try {
    // createSecureContext accepts any text as `ca`.
    for (const pem of tls.ca ?? []) new X509Certificate(pem)
    createSecureContext(tls)
  } catch (cause) {
    throw new Error(
      `KAFKA_SSL_*_FILE must be PEM, and the key must belong to the certificate: ${cause}`,
      {
        cause,
      },
    )
  }
  return tls
}

function refuseTls({
  KAFKA_SSL_CA_FILE: ca,
  KAFKA_SSL_CERT_FILE: cert,
  KAFKA_SSL_KEY_FILE: key,
}: Settings) {
  if (ca ?? cert ?? key)
    throw new Error('KAFKA_SSL_*_FILE need KAFKA_SECURITY_PROTOCOL SSL or SASL_SSL')
  return {}
}

function refuseSasl({ KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username }: Settings) {
  if (mechanism ?? username)
    throw new Error('KAFKA_SASL_* need KAFKA_SECURITY_PROTOCOL SASL_SSL or SASL_PLAINTEXT')
  return {}
}

function saslOptions(settings: Settings): Pick<KafkaConfig, 'sasl'> {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username } = settings
  const { KAFKA_SASL_PASSWORD: password } = settings
  if (!mechanism || !username || !password)
    throw new Error(
      'KAFKA_SECURITY_PROTOCOL with SASL needs KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD',
    )
  switch (mechanism) {
    case 'PLAIN':
      return { sasl: { mechanism: 'plain', username, password } }
    case 'SCRAM-SHA-256':
      return { sasl: { mechanism: 'scram-sha-256', username, password } }
    case 'SCRAM-SHA-512':
      return { sasl: { mechanism: 'scram-sha-512', username, password } }
    case 'OAUTHBEARER':
      return {
        sasl: {
          mechanism: 'oauthbearer',
          oauthBearerProvider: createTokenProvider(settings, { username, password }),
        },
      }
  }
}

const tokenResponse = z.object({ access_token: z.string() })

// Requests a token with the client credentials grant (RFC 6749, section 4.4), once per connection.
function createTokenProvider(
  { KAFKA_SASL_OAUTH_TOKEN_URL: url, KAFKA_SASL_OAUTH_SCOPE: scope }: Settings,
  { username, password }: { username: string; password: string },
): () => Promise<OauthbearerProviderResponse> {
  if (!url) throw new Error('KAFKA_SASL_MECHANISM OAUTHBEARER needs KAFKA_SASL_OAUTH_TOKEN_URL')
  const credentials = Buffer.from(`${encodeURIComponent(username)}:${encodeURIComponent(password)}`)
  return async () => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Basic ${credentials.toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope ? { scope } : {}) }),
      signal: AbortSignal.timeout(5000),
    })
    if (!response.ok) throw new Error(`KAFKA_SASL_OAUTH_TOKEN_URL returned ${response.status}`)
    return { value: tokenResponse.parse(await response.json()).access_token }
  }
}
