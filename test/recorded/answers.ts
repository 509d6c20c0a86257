import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Recorded } from './recorder.ts'

export const answersFile = path.resolve(import.meta.dirname, '../fixtures/recorded/answers.json')

const lineWidth = 200

/** JSON with whatever is short on a line of its own, so that a difference is read as a line. */
export function print(value: unknown, indent = ''): string {
  const short = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || indent.length + short.length <= lineWidth) {
    return indent === '' ? `${short}\n` : short
  }
  const deeper = `${indent}  `
  const isList = Array.isArray(value)
  const lines = isList
    ? value.map((one) => deeper + print(one, deeper))
    : Object.entries(value).map(
        ([name, one]) => `${deeper}${JSON.stringify(name)}: ${print(one, deeper)}`,
      )
  const [open, close] = isList ? '[]' : '{}'
  const text = `${open}\n${lines.join(',\n')}\n${indent}${close}`
  return indent === '' ? `${text}\n` : text
}

export async function readAnswers(): Promise<Recorded[]> {
  return JSON.parse(await readFile(answersFile, 'utf8'))
}
