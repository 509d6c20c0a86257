import os from 'node:os'
import { parseArgs } from 'node:util'
import { createLogger } from '../infra/telemetry.ts'
import { canRunKafkaJars, startKafkaBroker } from '../test/support/kafka-broker.ts'
import { type KafkaPlace, startEnvironment } from './environment.ts'
import { describeMachine, type Machine } from './machine.ts'
import type { Measurement } from './measurement.ts'
import { formatMeasurement, formatResult, writeTable } from './report.ts'
import { fullScale, quickScale } from './scale.ts'
import { runSuite, type StepName, stepNames, tableSteps } from './suite.ts'

const { values: flags } = parseArgs({
  options: {
    /** Smoke run: every step once, with few requests. */
    quick: { type: 'boolean', default: false },
    /** Runs only on this log. */
    log: { type: 'string' },
    /** Runs only these comma-separated steps. Default: those of the table. */
    only: { type: 'string', default: tableSteps.join() },
  },
})
const scale = flags.quick ? quickScale : fullScale
const steps = flags.only.split(',').map(parseStep)
// Only complete runs are written to the report.
const isTable = !flags.quick && flags.log === undefined && flags.only === tableSteps.join()

// Load average of the previous minute, which shows whether other programs affect the numbers.
const loadBefore = Math.round((os.loadavg()[0] ?? 0) * 10) / 10
const runs: { machine: Machine; measurements: Measurement[] }[] = []
if (flags.log !== 'kafka') runs.push(await benchOn(undefined))
if (flags.log !== 'embedded') runs.push(...(await onKafka()))
const measurements = runs.flatMap((run) => run.measurements)
const machine = runs.at(-1)?.machine
if (!machine) throw new Error('nothing was measured: there is no Kafka here')
const result = { date: new Date().toISOString().slice(0, 10), loadBefore, machine, measurements }
const table = formatResult(result)
if (isTable) await writeTable(table)
console.log(`\n${table}`)

async function onKafka() {
  const brokers = process.env.KAFKA_BROKERS
  if (brokers) return [await benchOn({ brokers })]
  if (!(await canRunKafkaJars())) {
    console.log(
      'Kafka is left out: KAFKA_BROKERS is not set, and there is no Java 17 with Maven to run one.',
    )
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
    const measurements: Measurement[] = []
    const onMeasured = (measurement: Measurement) => {
      console.log(formatMeasurement(measurement))
      measurements.push(measurement)
    }
    await runSuite({ environment, scale, steps, onMeasured })
    const machine = await describeMachine(environment.databaseUrl, kafka)
    return { machine, measurements }
  } finally {
    await environment.stop()
  }
}

function parseStep(name: string): StepName {
  const step = stepNames.find((known) => known === name)
  if (!step) throw new Error(`--only: ${name} is not one of ${stepNames.join(', ')}`)
  return step
}
