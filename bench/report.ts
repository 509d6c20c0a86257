import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Machine } from './machine.ts'
import { aimMet, type Measurement, type Side, type Unit } from './measurement.ts'
import type { Spread } from './stats.ts'

export interface BenchResult {
  date: string
  /** Load average of the machine at the start of the run. */
  loadBefore: number
  machine: Machine
  measurements: Measurement[]
}

const file = path.resolve(import.meta.dirname, '../docs/reports/performance.md')

/** Replaces the table between the markers of docs/reports/performance.md. */
export async function writeTable(table: string, name = 'bench'): Promise<void> {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`]
  const text = await readFile(file, 'utf8')
  const [before, after] = [text.split(begin)[0], text.split(end)[1]]
  if (before === undefined || after === undefined)
    throw new Error(`${file} has no markers for the table ${name}`)
  await writeFile(file, `${before}${begin}\n${table}\n${end}${after}`)
}

/** Returns a sentence with the date and the machine of a run. */
export const describeRun = ({ date, loadBefore, machine }: Omit<BenchResult, 'measurements'>) =>
  `${[date, ...machineParts(machine), `load average ${loadBefore.toFixed(1)} before`].join(', ')}.`

export function formatResult({ measurements, ...run }: BenchResult): string {
  const columns = [
    'what',
    'log',
    'measured',
    'aim',
    'met',
    'process µs, ours / theirs',
    'stores µs',
    'peak MB',
    'further',
  ]
  return [
    describeRun(run),
    '',
    row(columns),
    row(columns.map(() => '-')),
    ...measurements.map((measurement) => row(cells(measurement))),
  ].join('\n')
}

function machineParts({ cpu, cores, memoryGB, system, node, postgres, kafka }: Machine): string[] {
  return [
    cpu,
    `${cores} cores`,
    `${memoryGB} GB`,
    system,
    `Node ${node}`,
    postgres,
    ...(kafka ? [kafka] : []),
  ]
}

/** Formats the measurement as a line for the terminal. */
export function formatMeasurement(measurement: Measurement): string {
  const [name, log, value, aim, met, ...rest] = cells(measurement)
  return `${log}: ${name}: ${value}${aim ? `, aim ${aim}, ${met === 'yes' ? 'met' : 'MISSED'}` : ''} | ${rest.filter(Boolean).join(' | ')}`
}

export function row(cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

function cells(measurement: Measurement): string[] {
  const { name, log, unit, value, aim, sides, details } = measurement
  return [
    name,
    log,
    spread(value, unit),
    aim ? `${aim.direction === 'at least' ? '≥' : '≤'} ${format(aim.value, unit)}` : '',
    aim ? (aimMet(aim, value) ? 'yes' : 'no') : '',
    both(sides, ({ microsPerRequest }) => microsPerRequest.median),
    both(sides, ({ storeMicrosPerRequest }) => storeMicrosPerRequest.median),
    both(sides, ({ peakMegabytes }) => peakMegabytes),
    further(measurement.sides, details),
  ]
}

/** Our value, then that of the floor or the other package. */
function both(sides: Measurement['sides'], value: (side: Side) => number): string {
  return sides ? `${Math.round(value(sides.ours))} / ${Math.round(value(sides.floor))}` : ''
}

function further(sides: Measurement['sides'], details: Record<string, number>): string {
  const rates = sides
    ? [`requests/s ${both(sides, ({ requestsPerSecond }) => requestsPerSecond.median)}`]
    : []
  return [
    ...rates,
    ...Object.entries(details).map(([name, value]) => `${name} ${short(value)}`),
  ].join(', ')
}

function spread({ median, min, max }: Spread, unit: Unit): string {
  if (min === max) return format(median, unit)
  return `${format(median, unit)} (${short(min)}-${short(max)})`
}

function format(value: number, unit: Unit): string {
  if (unit === 'ratio') return short(value)
  return unit === 'per second'
    ? `${Math.round(value).toLocaleString('en')}/s`
    : `${short(value)} ${unit}`
}

function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en')
  return String(Math.round(value * 100) / 100)
}
