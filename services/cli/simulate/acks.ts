import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { Acknowledgement } from './recorder.ts'

export interface AckFile {
  write(acknowledgement: Acknowledgement): void
  close(): Promise<void>
}

/** A file with a JSON line for each acknowledged body: what must be in the log whatever happens to the server. */
export function openAckFile(file: string): AckFile {
  const stream = createWriteStream(file)
  return {
    write: (acknowledgement) => void stream.write(`${JSON.stringify(acknowledgement)}\n`),
    async close() {
      stream.end()
      await finished(stream)
    },
  }
}
