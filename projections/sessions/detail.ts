import type { SessionScored } from '../../schemas/events.ts'

const memberNames = [
  'request',
  'highlights',
  'attribution',
  'web_bot_auth',
  'network',
  'runtime_integrity',
  'connection_fingerprint',
  'browser',
  'device',
  'analysis_coverage',
  'signals_fired',
  'client_telemetry',
  'native_runtime_integrity',
  'native_app',
  'native_carrier',
  'native_motion_print',
  'device_identity',
  'install_id',
] as const satisfies (keyof SessionScored)[]

/** A later version of the event brought it. Nothing is stored for events of before, so a rebuild stores the same. */
const laterName = 'evidence' satisfies keyof SessionScored

type MemberName = (typeof memberNames)[number] | typeof laterName

export interface StoredDetail {
  /** The JSON text. Most members are only handed on: parsing 5 KB would cost more than the rest of an answer. */
  json(name: MemberName): string
  value<Name extends MemberName>(name: Name): SessionScored[Name]
}

/** A JSON object of the members as the event has them, one a line. */
export function writeDetail(data: SessionScored): string {
  const names: MemberName[] = data[laterName] === null ? [...memberNames] : [...memberNames, laterName]
  const lines = names.map((name) => `"${name}":${JSON.stringify(data[name])}`)
  return `{\n${lines.join(',\n')}\n}`
}

export function readDetail(text: string): StoredDetail {
  // JSON escapes a line break inside a string, so each one here ends a member.
  const lines = text.split('\n')
  const json = (name: MemberName) => {
    const line = lines[name === laterName ? memberNames.length + 1 : memberNames.indexOf(name) + 1]
    const start = `"${name}":`
    if (name === laterName && line === '}') return 'null'
    if (!line?.startsWith(start)) throw new Error(`a stored session has no ${name}`)
    return line.slice(start.length, line.endsWith(',') ? -1 : undefined)
  }
  return { json, value: (name) => JSON.parse(json(name)) }
}
