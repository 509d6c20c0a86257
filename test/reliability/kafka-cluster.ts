import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { freePort } from '../../infra/local/free-port.ts'
import { type KafkaBroker, startKafkaBroker } from '../support/kafka-broker.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { createAuthority } from '../support/tls-certificates.ts'

export interface KafkaCluster {
  /** By node, the first is number 1. */
  brokers: KafkaBroker[]
  /** Between clients and each of them. */
  proxies: TcpProxy[]
  /** Settings of a server that uses it: TLS with our own CA, and SCRAM. */
  settings: Record<string, string>
  stop(): Promise<void>
}

const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule'

/** Three brokers that keep three copies and need two, as in production. */
export async function startKafkaCluster({ within = tmpdir() } = {}): Promise<KafkaCluster> {
  const folder = await mkdtemp(path.join(within, 'tidegate-cluster-'))
  const authority = createAuthority()
  const { key, cert } = authority.issue({ host: '127.0.0.1' })
  const files = { ca: path.join(folder, 'ca.pem'), own: path.join(folder, 'broker.pem') }
  await writeFile(files.ca, authority.ca)
  await writeFile(files.own, key + cert)
  const ids = [1, 2, 3]
  const voters = Object.fromEntries(
    await Promise.all(ids.map(async (id) => [id, await freePort()])),
  )
  const secure = await Promise.all(ids.map(() => freePort()))
  const proxies = await Promise.all(
    secure.map((port) => startTcpProxy(`kafka://127.0.0.1:${port}`)),
  )
  const ports = proxies.map(({ url }) => Number(new URL(url).port))
  const starting = ids.map((id, index) =>
    startKafkaBroker({
      logger: pino({ level: 'silent' }),
      folder,
      node: { id, voters },
      listeners: [
        {
          name: 'SECURE',
          port: secure[index] ?? 0,
          protocol: 'SASL_SSL',
          advertised: ports[index],
        },
      ],
      format: ['--add-scram', 'SCRAM-SHA-512=[name=tidegate,password=secret]'],
      properties: propertiesOf(files),
    }),
  )
  const brokers = await Promise.all(starting)
  return {
    brokers,
    proxies,
    settings: {
      KAFKA_BROKERS: ports.map((port) => `127.0.0.1:${port}`).join(),
      KAFKA_SECURITY_PROTOCOL: 'SASL_SSL',
      KAFKA_SSL_CA_FILE: files.ca,
      KAFKA_SASL_MECHANISM: 'SCRAM-SHA-512',
      KAFKA_SASL_USERNAME: 'tidegate',
      KAFKA_SASL_PASSWORD: 'secret',
      KAFKA_REPLICATION_FACTOR: '3',
      KAFKA_MIN_INSYNC_REPLICAS: '2',
    },
    async stop() {
      await Promise.all([
        ...brokers.map((broker) => broker.stop()),
        ...proxies.map((proxy) => proxy.close()),
      ])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const propertiesOf = ({ ca, own }: { ca: string; own: string }): string =>
  [
    'ssl.keystore.type=PEM',
    `ssl.keystore.location=${own}`,
    'ssl.truststore.type=PEM',
    `ssl.truststore.location=${ca}`,
    'listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512',
    `listener.name.secure.scram-sha-512.sasl.jaas.config=${scram} required;`,
    'offsets.topic.replication.factor=3',
    'min.insync.replicas=2',
    // A broker that is gone is noticed within seconds.
    'broker.session.timeout.ms=6000',
    'replica.lag.time.max.ms=5000',
    '',
  ].join('\n')
