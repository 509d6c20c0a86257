import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { Readable } from 'node:stream'

/** The codes that a person types, or writes to a file, as the consent page shows them. */
export interface ClaimCodes {
  /** Begins to listen. Resolves to the file that is read at each `next`. */
  open(): Promise<string>
  /** The next code; undefined where there is none yet. */
  next(): Promise<string | undefined>
  close(): Promise<void>
}

// A longer text is no code.
const longest = 40

/** `file`: by default one in a folder that nobody else can write to. */
export function createClaimCodes({
  input,
  file: namedFile,
}: {
  input: Readable
  file?: string | undefined
}): ClaimCodes {
  const codes: string[] = []
  let folder: string | undefined
  let file = namedFile
  let lines: Interface | undefined
  let seen = ''

  async function written(): Promise<string> {
    const text = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '')
    return text.trim()
  }

  return {
    async open() {
      lines ??= createInterface({ input }).on('line', (line) => {
        if (line.trim() !== '') codes.push(line.trim().slice(0, longest))
      })
      if (file === undefined) {
        folder = await mkdtemp(path.join(tmpdir(), 'tidegate-code-'))
        file = path.join(folder, 'code')
      } else {
        // What was there before is of another signup.
        seen = await written()
      }
      return file
    },
    async next() {
      const text = await written()
      if (text !== seen) {
        seen = text
        if (text !== '' && text.length <= longest) codes.push(text)
      }
      return codes.shift()
    },
    async close() {
      lines?.close()
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}
