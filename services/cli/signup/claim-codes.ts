import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { Readable } from 'node:stream'

/** Source of the codes that the consent page shows, which a person types or writes to a file. */
export interface ClaimCodes {
  /** Starts to read standard input. Returns the path of the file that codes can also be written to. */
  open(): Promise<string>
  /** Returns the next code; undefined if there is none yet. */
  next(): Promise<string | undefined>
  close(): Promise<void>
}

// Longer texts are not codes.
const maxLength = 40

/** Creates the source. By default, the file is in a new folder that only this user can write to. */
export function createClaimCodes({
  input,
  file: initialFile,
}: {
  input: Readable
  file?: string | undefined
}): ClaimCodes {
  const codes: string[] = []
  let folder: string | undefined
  let file = initialFile
  let lines: Interface | undefined
  let lastText = ''

  async function readCodeFile(): Promise<string> {
    const text = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '')
    return text.trim()
  }

  return {
    async open() {
      lines ??= createInterface({ input }).on('line', (line) => {
        if (line.trim() !== '') codes.push(line.trim().slice(0, maxLength))
      })
      if (file === undefined) {
        folder = await mkdtemp(path.join(tmpdir(), 'tidegate-code-'))
        file = path.join(folder, 'code')
      } else {
        // Ignore a code that an earlier signup left in the file.
        lastText = await readCodeFile()
      }
      return file
    },
    async next() {
      const text = await readCodeFile()
      if (text !== lastText) {
        lastText = text
        if (text !== '' && text.length <= maxLength) codes.push(text)
      }
      return codes.shift()
    },
    async close() {
      lines?.close()
      if (folder !== undefined) await rm(folder, { recursive: true, force: true })
    },
  }
}
