import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createPool } from '../infra/postgres/pool.ts'
import type { KafkaPlace } from './environment.ts'

/** Machine on which the numbers were measured. */
export interface Machine {
  cpu: string
  cores: number
  memoryGB: number
  system: string
  node: string
  postgres: string
  kafka: string | null
}

export async function describeMachine(
  databaseUrl: string,
  kafka: KafkaPlace | undefined,
): Promise<Machine> {
  const pool = createPool({ url: databaseUrl, max: 1 })
  const { rows } = await pool
    .query<{ server_version: string }>('show server_version')
    .finally(() => pool.end())
  return {
    cpu: os.cpus()[0]?.model.trim() ?? 'unknown processor',
    cores: os.availableParallelism(),
    memoryGB: Math.round(os.totalmem() / 2 ** 30),
    system: systemName(),
    node: process.versions.node,
    postgres: `PostgreSQL ${rows[0]?.server_version}`,
    kafka: kafka ? kafkaName(kafka) : null,
  }
}

function systemName(): string {
  const release = readFileSync('/etc/os-release', 'utf8')
  return `${/^PRETTY_NAME="(.*)"$/m.exec(release)?.[1] ?? os.type()}, Linux ${os.release()}`
}

/** Returns the version of a broker that the bench started, from its jars. */
function kafkaName({ brokers, pid }: KafkaPlace): string {
  if (pid === undefined) return `Kafka at ${brokers}`
  const pom = readFileSync(
    path.resolve(import.meta.dirname, '../test/support/kafka-pom.xml'),
    'utf8',
  )
  const version = /<kafka\.version>(.*?)<\/kafka\.version>/.exec(pom)?.[1]
  return `Apache Kafka ${version ?? ''}`.trim()
}
