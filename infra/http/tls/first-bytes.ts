import type { Socket } from 'node:net'
import { readClientHello } from '../../wire/tls/client-hello.ts'
import { ja4Of } from '../../wire/tls/ja4.ts'

/**
 * Reads how the client begins TLS, and puts the bytes back for whoever takes the connection next. `next` gets the JA4,
 * or null where it is no hello; it is not called where the connection ends before.
 */
export function readFirstBytes(socket: Socket, next: (ja4: string | null) => void): void {
  const chunks: Buffer[] = []
  const read = () => {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) return
    chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const reading = readClientHello(bytes)
    if (reading.state === 'incomplete') return
    socket.off('readable', read)
    socket.unshift(bytes)
    next(reading.state === 'complete' ? ja4Of(reading.hello) : null)
  }
  socket.on('readable', read)
}
