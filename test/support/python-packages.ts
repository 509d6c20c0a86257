import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { root } from './test-projects.ts'

const run = promisify(execFile)

/** Creates a Python environment with PyPI packages once, and returns its folder of programs. Rejects without PyPI. */
export async function pythonPrograms(name: string, packages: string[]): Promise<string> {
  const folder = path.join(root, '.cache', name)
  const programs = path.join(folder, 'bin')
  const complete = path.join(folder, 'complete')
  if (existsSync(complete)) return programs
  await run('python3', ['-m', 'venv', folder])
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages]
  await run(path.join(programs, 'python'), install)
  await writeFile(complete, '')
  return programs
}
