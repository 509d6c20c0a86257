import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
import kafkajs from 'kafkajs'
import type { Config } from '../../config.ts'

export type CompressionType = Config['KAFKA_COMPRESSION_TYPE']

const types = {
  none: kafkajs.CompressionTypes.None,
  gzip: kafkajs.CompressionTypes.GZIP,
  zstd: kafkajs.CompressionTypes.ZSTD,
}

/** Values of a topic's `compression.type` that consumers can read. */
export const readableTypes = ['producer', 'uncompressed', 'gzip', 'zstd']

export const compressionCode = (type: CompressionType): kafkajs.CompressionTypes => types[type]

const [compress, decompress] = [promisify(zstdCompress), promisify(zstdDecompress)]

/** Registers zstd, which kafkajs 2.2.4 lacks. Must be called before anything is sent or read. */
export function registerZstd(): void {
  kafkajs.CompressionCodecs[kafkajs.CompressionTypes.ZSTD] = () => ({
    compress: ({ buffer }: { buffer: Buffer }) => compress(buffer),
    decompress: (buffer: Buffer) => decompress(buffer),
  })
}
