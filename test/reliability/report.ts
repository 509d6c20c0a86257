import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from '../support/test-projects.ts'

export interface Count {
  faults: number
  /** Acknowledged, of those lost, refused with 503 and Retry-After, and requests without an answer. */
  sessions: number
  lost: number
  refused: number
  unanswered: number
}

interface Result {
  name: string
  seed: string
  count: Count
  seconds: number
}

const page = path.join(root, 'docs/reports/reliability.md')
const head =
  '| fault | faults | sessions | lost | 503 with Retry-After | no answer | seed | last run |'
const rule = '|-|-|-|-|-|-|-|-|'

/** Replaces the fault's line of the table in docs/reports/reliability.md, and prints it. */
export function recordResult({ name, seed, count, seconds }: Result): void {
  const { faults, sessions, lost, refused, unanswered } = count
  const day = new Date().toISOString().slice(0, 10)
  const cells = [name, faults, sessions, lost, refused, unanswered, `\`${seed}\``, day]
  const line = `| ${cells.join(' | ')} |`
  console.log(`${line} ${seconds} s`)
  const text = readFileSync(page, 'utf8')
  const known = text.split('\n').find((one) => one.startsWith(`| ${name} |`))
  const table = `${head}\n${rule}\n`
  writeFileSync(page, known ? text.replace(known, line) : text.replace(table, `${table}${line}\n`))
}
