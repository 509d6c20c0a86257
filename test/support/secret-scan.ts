/** Value that must not be found: bytes if its text is an encoding (base64, hex) of them. */
export interface Secret {
  name: string
  value: string | Buffer
  /** Returns true for places where the secret is allowed. Default: none. */
  mayBeIn?: (place: string) => boolean
}

/** Stored or printed bytes, and their source. */
export interface Place {
  name: string
  bytes: Buffer
}

export interface Finding {
  secret: string
  form: string
  place: string
}

interface Needle {
  secret: Secret
  form: string
  bytes: Buffer
}

// Shorter values would be found by chance.
const minBytes = 8

/** Returns every form in which the value can appear within other text. */
function needlesOf(secret: Secret): Needle[] {
  const bytes = Buffer.from(secret.value)
  if (bytes.length < minBytes) throw new Error(`${secret.name} is too short to be looked for`)
  const text = bytes.toString()
  const forms: [string, string | Buffer][] = [
    ['raw', bytes],
    ['hex', bytes.toString('hex')],
    ['HEX', bytes.toString('hex').toUpperCase()],
    ['json', JSON.stringify(text).slice(1, -1)],
    ['percent', encodeURIComponent(text)],
    ...[0, 1, 2].map((shift): [string, string] => [`base64+${shift}`, base64Within(bytes, shift)]),
    ...[0, 1, 2].map((shift): [string, string] => [
      `base64url+${shift}`,
      base64Within(bytes, shift).replaceAll('+', '-').replaceAll('/', '_'),
    ]),
  ]
  const needles = forms.map(([form, value]) => ({ secret, form, bytes: Buffer.from(value) }))
  // Bytes that are not text have no JSON or percent-encoded form.
  const isText = Buffer.from(text).equals(bytes)
  return needles.filter(({ form }) => isText || (form !== 'json' && form !== 'percent'))
}

/**
 * Returns the part of the value's base64 text that does not depend on the `shift` bytes before it or those after it.
 */
function base64Within(bytes: Buffer, shift: number): string {
  const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
  const whole = Math.floor(((shift + bytes.length) * 4) / 3)
  return encoded.slice(Math.ceil((shift * 4) / 3), whole)
}

export interface Scanner {
  /** Number of byte strings to search for. */
  needles: number
  /** Returns the number of bytes that were scanned. */
  scanned: () => number
  /** Returns every secret that is not allowed there, once for each form. */
  scan(place: Place): Finding[]
}

/**
 * Creates a scanner that finds all secrets in one pass. It compares needles only where their last three bytes match,
 * because the first bytes are equal in many values.
 */
export function createScanner(secrets: Secret[]): Scanner {
  const needles = secrets.flatMap(needlesOf)
  const ends = new Uint8Array(1 << 24)
  const byEnd = Map.groupBy(needles, ({ bytes }) => bytes.readUIntBE(bytes.length - 3, 3))
  for (const end of byEnd.keys()) ends[end] = 1
  let scanned = 0

  function scan({ name, bytes }: Place): Finding[] {
    scanned += bytes.length
    const found = new Set<Needle>()
    let window = 0
    for (let i = 0; i < bytes.length; i++) {
      window = ((window << 8) | (bytes[i] ?? 0)) & 0xffffff
      if (ends[window] === 0) continue
      for (const needle of byEnd.get(window) ?? []) {
        if (endsAt(bytes, i + 1, needle.bytes)) found.add(needle)
      }
    }
    return [...found]
      .filter(({ secret }) => !secret.mayBeIn?.(name))
      .map(({ secret, form }) => ({ secret: secret.name, form, place: name }))
  }

  return { needles: needles.length, scanned: () => scanned, scan }
}

function endsAt(bytes: Buffer, end: number, needle: Buffer): boolean {
  const start = end - needle.length
  return start >= 0 && bytes.compare(needle, 0, needle.length, start, end) === 0
}
