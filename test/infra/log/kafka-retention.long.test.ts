import kafkajs from 'kafkajs'
import { pino } from 'pino'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { readConfig } from '../../../infra/config.ts'
import { freePort } from '../../../infra/local/free-port.ts'
import { createKafkaClient } from '../../../infra/log/kafka/client.ts'
import { openKafkaLog } from '../../../infra/log/kafka/log.ts'
import { kafkaSecurityOptions } from '../../../infra/log/kafka/security.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { eventually } from '../../support/eventually.ts'
import { type KafkaBroker, startKafkaBroker } from '../../support/kafka-broker.ts'
import { needs } from '../../support/needs.ts'

const { describe, it } = needs('kafka-jars')

const logger = pino({ level: 'silent' })
const day = 24 * 60 * 60 * 1000
const { ALLOW } = kafkajs.AclPermissionTypes
const { CREATE, DESCRIBE, DESCRIBE_CONFIGS, READ, WRITE } = kafkajs.AclOperationTypes

describe('the retention of topics', () => {
  let broker: KafkaBroker
  let limited: number
  const logs: EventLog[] = []
  const client = () => createKafkaClient({ brokers: [broker.brokers], logger })

  beforeAll(async () => {
    limited = await freePort()
    broker = await startKafkaBroker({
      logger,
      listeners: [{ name: 'LIMITED', port: limited, protocol: 'SASL_PLAINTEXT' }],
      properties: [
        'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        // Clients without a password are the broker itself and the operator of this test.
        'super.users=User:ANONYMOUS',
        'listener.name.limited.sasl.enabled.mechanisms=PLAIN',
        'listener.name.limited.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_server="secret";',
        '',
      ].join('\n'),
    })
    await asOperator((admin) => admin.createAcls({ acl: documentedAcls() }))
  }, 60_000)
  afterEach(() => Promise.all(logs.splice(0).map((log) => log.close())))
  afterAll(() => broker?.stop())

  /** The ACLs of docs/operate/kafka.md, without `AlterConfigs`. */
  function documentedAcls() {
    const aclsOf = (resourceType: number, resourceName: string, operations: number[]) =>
      operations.map((operation) => ({
        resourceType,
        resourceName,
        operation,
        permissionType: ALLOW,
        resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
        principal: 'User:server',
        host: '*',
      }))
    const { TOPIC, CLUSTER } = kafkajs.AclResourceTypes
    return [
      ...aclsOf(TOPIC, '*', [DESCRIBE, DESCRIBE_CONFIGS, READ, WRITE, CREATE]),
      ...aclsOf(CLUSTER, 'kafka-cluster', [DESCRIBE]),
    ]
  }

  async function asOperator<T>(work: (admin: kafkajs.Admin) => Promise<T>): Promise<T> {
    const admin = client().admin()
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      await admin.disconnect()
    }
  }

  async function open(env: NodeJS.ProcessEnv = {}): Promise<EventLog> {
    const brokers = env.KAFKA_SASL_USERNAME ? [`127.0.0.1:${limited}`] : [broker.brokers]
    const log = await openKafkaLog({
      brokers,
      logger,
      replicationFactor: 1,
      minInsyncReplicas: 1,
      security: kafkaSecurityOptions(readConfig(env)),
    })
    logs.push(log)
    return log
  }

  const configOf = (topic: string) =>
    asOperator(async (admin) => {
      const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }]
      const [found] = (await admin.describeConfigs({ includeSynonyms: false, resources })).resources
      return Object.fromEntries(
        found?.configEntries.map(({ configName, configValue }) => [configName, configValue]) ?? [],
      )
    })
  // The controller confirms a change before all brokers have applied it.
  const eventuallyApplied = (check: () => Promise<void>) => eventually(check)
  const retentionWarnings = async (log: EventLog) =>
    (await log.warnings()).filter((warning) => /retention/.test(warning))

  it('follows the settings, also for existing topics, and leaves other settings unchanged', async () => {
    const log = await open()
    await log.ensureTopics([{ topic: 'days', partitions: 1, retentionMs: 7 * day }])
    expect(await configOf('days')).toMatchObject({
      'retention.ms': String(7 * day),
      'segment.ms': String(day),
    })
    const before = await configOf('days')
    await (await open()).ensureTopics([{ topic: 'days', partitions: 1, retentionMs: 2 * day }])
    const segment = String(Math.floor((2 * day) / 7))
    const shorter = { 'retention.ms': String(2 * day), 'segment.ms': segment }
    await eventuallyApplied(async () =>
      expect(await configOf('days')).toEqual({ ...before, ...shorter }),
    )
    expect(before['max.message.bytes']).toBe(String(4 * 1024 * 1024))
    expect(await retentionWarnings(log)).toEqual([])
  })

  it('causes a warning if a topic that must be kept forever has one, and is left alone', async () => {
    const log = await open()
    await log.ensureTopics([{ topic: 'ever', partitions: 1 }])
    expect(await configOf('ever')).toMatchObject({ 'retention.ms': '-1' })
    const configEntries = [{ name: 'retention.ms', value: String(day) }]
    const type = kafkajs.ConfigResourceTypes.TOPIC
    const resources = [{ type, name: 'ever', configEntries }]
    await asOperator((admin) => admin.alterConfigs({ validateOnly: false, resources }))
    const shorter = { 'retention.ms': String(day) }
    await eventuallyApplied(async () => expect(await configOf('ever')).toMatchObject(shorter))
    await log.ensureTopics([{ topic: 'ever', partitions: 1 }])
    expect(await retentionWarnings(log)).toEqual([
      `topic ever: retention.ms is ${day}, so it deletes records that must be kept forever`,
    ])
    expect(await configOf('ever')).toMatchObject(shorter)
  })

  it('configures compaction so that replaced records are removed in time, also for existing topics', async () => {
    const compacted = (ms: number) => ({ topic: 'newest', partitions: 1, compactedWithinMs: ms })
    const log = await open()
    await log.ensureTopics([compacted(2 * day)])
    expect(await configOf('newest')).toMatchObject({
      'cleanup.policy': 'compact',
      'segment.ms': String(day / 2),
      'max.compaction.lag.ms': String(day),
      'file.delete.delay.ms': '60000',
      'delete.retention.ms': String(7 * day),
    })
    await (await open()).ensureTopics([compacted(day)])
    await eventuallyApplied(async () =>
      expect(await configOf('newest')).toMatchObject({ 'max.compaction.lag.ms': String(day / 2) }),
    )
  })

  it('causes an error with the message of brokers that reject a setting', async () => {
    const refused = (await open()).ensureTopics([
      { topic: 'odd', partitions: 1, compactedWithinMs: -day },
    ])
    await expect(refused).rejects.toThrow('the brokers rejected the settings of a topic')
  })

  it('causes a warning if the user may not change a topic', async () => {
    await (await open()).ensureTopics([{ topic: 'refused', partitions: 1, retentionMs: 7 * day }])
    const log = await open({
      KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT',
      KAFKA_SASL_MECHANISM: 'PLAIN',
      KAFKA_SASL_USERNAME: 'server',
      KAFKA_SASL_PASSWORD: 'secret',
    })
    await log.ensureTopics([{ topic: 'refused', partitions: 1, retentionMs: 2 * day }])
    const [warning] = await retentionWarnings(log)
    expect(warning).toContain(`topic refused: retention.ms is ${7 * day}, and setting`)
    expect(await configOf('refused')).toMatchObject({ 'retention.ms': String(7 * day) })
    const record = { topic: 'refused', key: 'key', value: Buffer.from('value'), headers: {} }
    expect(await log.append([record])).toHaveLength(1)
  })
})
