import { parseArgs } from 'node:util'
import { startKafkaBroker } from '../infra/local/kafka-broker.ts'
import { canRunKafkaJars } from '../infra/local/kafka-jars.ts'
import { createLogger } from '../infra/telemetry.ts'
import { type Environment, type KafkaPlace, startEnvironment } from './environment.ts'
import { describeMachine, type Machine } from './machine.ts'
import type { Measurement } from './measurement.ts'
import { measureCollect } from './measures/collect.ts'
import { measureLog } from './measures/log.ts'
import { measureReadable } from './measures/readable.ts'
import { measureReadback } from './measures/readback.ts'
import { measureRebuild } from './measures/rebuild.ts'
import { measureHandOff, measureMemory } from './measures/traffic.ts'
import { formatMeasurement, formatResult, writeResult } from './report.ts'
import { fullScale, quickScale, type Scale } from './scale.ts'

const { values: flags } = parseArgs({
  options: {
    /** A smoke run: everything once and small; docs/performance.md stays as it is. */
    quick: { type: 'boolean', default: false },
    /** Only one log. */
    log: { type: 'string' },
  },
})
const scale = flags.quick ? quickScale : fullScale

const runs: { machine: Machine; measurements: Measurement[] }[] = []
if (flags.log !== 'kafka') runs.push(await benchOn(undefined))
if (flags.log !== 'embedded') runs.push(...(await onKafka()))
const measurements = runs.flatMap((run) => run.measurements)
const machine = runs.at(-1)?.machine
if (!machine) throw new Error('nothing was measured: there is no Kafka here')
const result = { date: new Date().toISOString().slice(0, 10), quick: flags.quick, machine, measurements }
await writeResult(result, { intoDocs: !flags.quick && flags.log === undefined })
console.log(`\n${formatResult(result)}`)

async function onKafka() {
  const brokers = process.env.KAFKA_BROKERS
  if (brokers) return [await benchOn({ brokers })]
  if (!(await canRunKafkaJars())) {
    console.log('Kafka is left out: KAFKA_BROKERS is not set, and there is no Java 17 with Maven to run one.')
    return []
  }
  const broker = await startKafkaBroker({ logger: createLogger('warn') })
  try {
    return [await benchOn(broker)]
  } finally {
    await broker.stop()
  }
}

async function benchOn(kafka: KafkaPlace | undefined) {
  const environment = await startEnvironment(kafka)
  try {
    const measurements = await measureAll(environment, scale)
    const machine = await describeMachine(environment.databaseUrl, kafka)
    return { machine, measurements }
  } finally {
    await environment.stop()
  }
}

/** The traffic comes first: what it leaves behind is what is read and rebuilt afterwards. */
async function measureAll(environment: Environment, scale: Scale): Promise<Measurement[]> {
  const measurements: Measurement[] = []
  const add = (...more: Measurement[]) => {
    for (const measurement of more) console.log(formatMeasurement(measurement))
    measurements.push(...more)
  }
  const child = await environment.startAllInOne()
  const traffic = { environment, child }
  try {
    const { measurement, sessionsPerSecond } = await measureMemory(
      traffic,
      scale.sessions[environment.logName],
    )
    add(measurement)
    add(...(await measureHandOff(traffic, scale.handOffs)))
    add(await measureReadable({ ...traffic, peak: sessionsPerSecond, seconds: scale.halfPeakSeconds }))
    add(await measureReadback(traffic, scale))
  } finally {
    await child.stop()
  }
  add(await measureRebuild(environment, scale.rebuilds))
  add(...(await measureCollect(environment, scale)))
  add(...(await measureLog(environment, scale.logSeconds)))
  return measurements
}
