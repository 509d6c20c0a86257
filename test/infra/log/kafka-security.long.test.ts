import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, expect } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { freePort } from '../../../infra/local/free-port.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { kafkaSecurityOptions } from '../../../infra/log/kafka/security.ts'
import { type KafkaBroker, startKafkaBroker } from '../../support/kafka-broker.ts'
import { needs } from '../../support/needs.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { createAuthority } from '../../support/tls-certificates.ts'

const { describe, it } = needs('kafka-jars')

const logger = pino({ level: 'silent' })
const jaas = 'org.apache.kafka.common.security'
const record = { topic: 'topic', key: 'key', value: Buffer.from('value'), headers: {} }

describe('a broker with TLS and passwords', () => {
  const folder = temporaryFolder('kafka-tls')
  let broker: KafkaBroker
  let tokens: Server
  let ports: { secure: number; mutual: number }
  let files: { ca: string; cert: string; key: string; otherCa: string }

  beforeAll(async () => {
    const file = async (name: string, text: string) => {
      await writeFile(path.join(folder, name), text)
      return path.join(folder, name)
    }
    const authority = createAuthority()
    const [own, client] = [
      authority.issue({ host: '127.0.0.1' }),
      authority.issue({ host: 'client' }),
    ]
    files = {
      ca: await file('ca.pem', authority.ca),
      cert: await file('client.pem', client.cert),
      key: await file('client.key', client.key),
      otherCa: await file('other.pem', createAuthority('Other').ca),
    }
    ports = { secure: await freePort(), mutual: await freePort() }
    const mechanisms = ['plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer']
    const scram = (mechanism: string) => [
      '--add-scram',
      `${mechanism}=[name=tidegate,password=secret]`,
    ]
    broker = await startKafkaBroker({
      logger,
      folder,
      listeners: [
        { name: 'SECURE', port: ports.secure, protocol: 'SASL_SSL' },
        { name: 'MUTUAL', port: ports.mutual, protocol: 'SSL' },
      ],
      format: [...scram('SCRAM-SHA-256'), ...scram('SCRAM-SHA-512')],
      properties: [
        'ssl.keystore.type=PEM',
        `ssl.keystore.location=${await file('broker.pem', own.key + own.cert)}`,
        'ssl.truststore.type=PEM',
        `ssl.truststore.location=${files.ca}`,
        'listener.name.mutual.ssl.client.auth=required',
        `listener.name.secure.sasl.enabled.mechanisms=${mechanisms.map((name) => name.toUpperCase()).join()}`,
        `listener.name.secure.plain.sasl.jaas.config=${jaas}.plain.PlainLoginModule required user_tidegate="secret";`,
        ...['256', '512'].map(
          (size) =>
            `listener.name.secure.scram-sha-${size}.sasl.jaas.config=${jaas}.scram.ScramLoginModule required;`,
        ),
        `listener.name.secure.oauthbearer.sasl.jaas.config=${jaas}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";`,
        '',
      ].join('\n'),
    })
    tokens = createServer(respondWithToken).listen(0, '127.0.0.1')
    await once(tokens, 'listening')
  }, 60_000)

  afterAll(async () => {
    tokens?.close()
    await broker?.stop()
  })

  const sasl = (mechanism: string, password = 'secret') => ({
    KAFKA_SECURITY_PROTOCOL: 'SASL_SSL',
    KAFKA_SSL_CA_FILE: files.ca,
    KAFKA_SASL_MECHANISM: mechanism,
    KAFKA_SASL_USERNAME: 'tidegate',
    KAFKA_SASL_PASSWORD: password,
    KAFKA_SASL_OAUTH_TOKEN_URL: `http://127.0.0.1:${(tokens.address() as AddressInfo).port}/`,
  })

  /** Appends a record and returns the end offset. */
  async function appendTo(port: number, settings: Record<string, string>): Promise<number> {
    const security = kafkaSecurityOptions(readConfig(settings))
    const log = await openKafkaLog({ brokers: [`127.0.0.1:${port}`], security, logger })
    try {
      await log.ensureTopics([{ topic: 'topic', partitions: 1 }])
      await log.append([record])
      expect(await log.identity()).toMatch(/^Kafka cluster \S+$/)
      const [end] = await log.endPositions('topic')
      return end?.offset ?? 0
    } finally {
      await log.close()
    }
  }

  it.each(['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'])(
    'accepts %s',
    async (mechanism) => {
      expect(await appendTo(ports.secure, sasl(mechanism))).toBeGreaterThan(0)
    },
  )

  it('accepts a client certificate', async () => {
    const { ca, cert, key } = files
    const own = { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key }
    const tls = { KAFKA_SECURITY_PROTOCOL: 'SSL', KAFKA_SSL_CA_FILE: ca }
    expect(await appendTo(ports.mutual, { ...tls, ...own })).toBeGreaterThan(0)
    await expect(appendTo(ports.mutual, tls)).rejects.toThrow()
  })

  it.each([
    ['a wrong password', () => sasl('SCRAM-SHA-512', 'wrong')],
    ['an OAuth client without a token', () => sasl('OAUTHBEARER', 'wrong')],
    [
      'a CA that did not issue its certificate',
      () => ({ ...sasl('PLAIN'), KAFKA_SSL_CA_FILE: files.otherCa }),
    ],
  ])('is not used with %s', async (_, settings) => {
    await expect(appendTo(ports.secure, settings())).rejects.toThrow()
  })

  it('causes warnings, because it has no replicas', async () => {
    const log = await openKafkaLog({ brokers: [broker.brokers], logger, replicationFactor: 1 })
    await log.ensureTopics([{ topic: 'topic', partitions: 1 }])
    expect(await log.warnings()).toEqual([
      expect.stringContaining('a topic has a replication factor of 1'),
      expect.stringContaining('min.insync.replicas is 1'),
    ])
    await log.close()
  })
})

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Responds with an unsigned token, which a broker without a key set accepts. */
const respondWithToken: Parameters<typeof createServer>[1] = (request, response) => {
  const known = `Basic ${Buffer.from('tidegate:secret').toString('base64')}`
  if (request.headers.authorization !== known) return response.writeHead(401).end()
  const now = Math.floor(Date.now() / 1000)
  const token = `${encoded({ alg: 'none' })}.${encoded({ sub: 'tidegate', iat: now, exp: now + 300 })}.`
  return response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ access_token: token }))
}
