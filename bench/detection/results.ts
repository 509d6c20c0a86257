import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Attack } from './attacks.ts'
import type { Kind } from './cases.ts'
import type { Peer, Phase } from './site.ts'
import type { FiredSignal, Verdict } from './tidegate.ts'

/** Judgement of a case at one phase, or its failure. */
export interface Row {
  name: string
  case: string
  kind: Kind
  family: string
  framework: string
  version: string
  acts: boolean
  seed: string
  verdict: Verdict | null
  score: number | null
  signals_fired: FiredSignal[]
  botd: Peer | null
  fpscanner: Peer | null
  error: string | null
  /** True if the server has learned nothing. */
  isFresh?: true
  attack?: Attack
  nth?: number
}

export interface Results {
  date: string
  commit: string
  machine: Record<string, string>
  versions: Record<string, string>
  seed: string
  seconds: number
  rows: Row[]
}

export const nameOf = (name: string, phase: Phase, nth?: number) =>
  nth === undefined ? `${name}/${phase}` : `${name}/${phase}-${String(nth).padStart(2, '0')}`

const file = path.join(import.meta.dirname, 'results.json')

/** Reads the results of the previous run; undefined before the first. */
export async function readResults(): Promise<Results | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

/** Writes one row per line, for readable diffs. */
export async function writeResults({ rows, ...about }: Results): Promise<void> {
  const head = JSON.stringify(about, null, 2).slice(0, -2)
  const lines = rows.map((row) => `    ${JSON.stringify(row)}`).join(',\n')
  await writeFile(file, `${head},\n  "rows": [\n${lines}\n  ]\n}\n`)
}
