interface Primitives {
  isArray(value: unknown): value is unknown[]
  keysOf(value: object): string[]
  /** Returns the UTF-16 code unit at an index. */
  codeAt(text: string, at: number): number
}

const hex = '0123456789abcdef'
const shortEscapes: Record<number, string> = {
  8: '\\b',
  9: '\\t',
  10: '\\n',
  12: '\\f',
  13: '\\r',
  34: '\\"',
  92: '\\\\',
}

function escaped(code: number): string {
  if (code < 0x60 && shortEscapes[code]) return shortEscapes[code]
  return `\\u${hex[code >> 12]}${hex[(code >> 8) & 15]}${hex[(code >> 4) & 15]}${hex[code & 15]}`
}

const isHigh = (code: number) => code >= 0xd800 && code <= 0xdbff
const isLow = (code: number) => code >= 0xdc00 && code <= 0xdfff

/**
 * Creates a JSON serializer for plain data, with the same output as `JSON.stringify`. It uses nothing that a page can
 * change: `JSON.stringify`, `toJSON`, and setters on prototypes.
 */
export function createSerializer({ isArray, keysOf, codeAt }: Primitives) {
  // Caches code units, because a call into another realm is the slowest step. Without a prototype, so that the page
  // cannot interfere.
  const codes: Record<string, number | null> = { __proto__: null }

  // Returns undefined for values that JSON cannot represent. Objects omit them, and arrays have null in their place.
  function jsonOf(value: unknown): string | undefined {
    if (value === null) return 'null'
    if (typeof value === 'string') return quoted(value)
    // Formats -0 as 0, like JSON.stringify.
    if (typeof value === 'number') return value - value === 0 ? `${value}` : 'null'
    if (typeof value === 'boolean') return value ? 'true' : 'false'
    if (typeof value !== 'object') return undefined
    return isArray(value) ? arrayOf(value) : objectOf(value)
  }

  function arrayOf(values: unknown[]): string {
    let json = ''
    for (let i = 0; i < values.length; i++) json += `${i ? ',' : ''}${jsonOf(values[i]) ?? 'null'}`
    return `[${json}]`
  }

  function objectOf(value: object): string {
    const names = keysOf(value)
    let json = ''
    for (let i = 0; i < names.length; i++) {
      const name = names[i] ?? ''
      const member = jsonOf((value as Record<string, unknown>)[name])
      if (member !== undefined) json += `${json && ','}${quoted(name)}:${member}`
    }
    return `{${json}}`
  }

  function quoted(text: string): string {
    let json = '"'
    for (let i = 0; i < text.length; i++) {
      const code = codeUnitAt(text, i)
      const plain =
        code >= 0x20 && code !== 34 && code !== 92 && (code < 0xd800 || !isLone(text, i, code))
      json += plain ? text[i] : escaped(code)
    }
    return `${json}"`
  }

  // Returns true for an unpaired surrogate, which UTF-8 cannot encode.
  function isLone(text: string, at: number, code: number): boolean {
    if (isHigh(code)) return !isLow(codeUnitAt(text, at + 1))
    return isLow(code) && !isHigh(codeUnitAt(text, at - 1))
  }

  function codeUnitAt(text: string, at: number): number {
    const character = at >= 0 && at < text.length ? text[at] : undefined
    if (character === undefined) return 0
    const code = codes[character] ?? codeAt(text, at)
    codes[character] = code
    return code
  }

  // Encodes text without lone surrogates as UTF-8. Typed array elements cannot be intercepted by setters.
  function utf8(text: string): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(text.length * 3)
    let end = 0
    for (let i = 0; i < text.length; i++) {
      let code = codeUnitAt(text, i)
      if (isHigh(code)) code = 0x10000 + ((code - 0xd800) << 10) + (codeUnitAt(text, ++i) - 0xdc00)
      if (code < 0x80) bytes[end++] = code
      else {
        if (code < 0x800) bytes[end++] = 0xc0 | (code >> 6)
        else {
          if (code < 0x10000) bytes[end++] = 0xe0 | (code >> 12)
          else {
            bytes[end++] = 0xf0 | (code >> 18)
            bytes[end++] = 0x80 | ((code >> 12) & 63)
          }
          bytes[end++] = 0x80 | ((code >> 6) & 63)
        }
        bytes[end++] = 0x80 | (code & 63)
      }
    }
    return new Uint8Array(bytes.buffer, 0, end)
  }

  return { encode: (value: unknown) => utf8(jsonOf(value) ?? 'null'), jsonOf }
}
