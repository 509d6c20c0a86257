import { execFile } from 'node:child_process'
import path from 'node:path'

/** Those of the files that are in a git repository and would be committed with everything else. */
export async function committable(files: string[]): Promise<string[]> {
  const found = await Promise.all(files.map(async (file) => ({ file, is: await isCommittable(file) })))
  return found.flatMap(({ file, is }) => (is ? [file] : []))
}

/** git says 0 of a file that it ignores, 1 of another, 128 where there is no repository. */
function isCommittable(file: string): Promise<boolean> {
  const target = path.resolve(file)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const args = ['check-ignore', '--quiet', '--', target]
  execFile('git', args, { cwd: path.dirname(target) }, (error) => resolve(error?.code === 1))
  return promise
}
