import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { pack } from 'tar-stream'

// The fixed time that npm uses.
const mtime = new Date('1985-10-26T08:15:00.000Z')

/** Returns the folder as an npm tarball. The same files give the same bytes. */
export async function tarballOf(folder: string): Promise<Buffer> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)))
    .filter((file) => !file.split(path.sep).includes('node_modules'))
    .sort()
  const archive = pack()
  for (const file of files) {
    const mode = file.endsWith('.cjs') ? 0o755 : 0o644
    archive.entry({ name: `package/${file}`, mode, mtime }, await readFile(path.join(folder, file)))
  }
  archive.finalize()
  return promisify(gzip)(await buffer(archive), { level: 9 })
}
