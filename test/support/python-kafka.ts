import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { root } from './test-projects.ts'

const run = promisify(execFile)
const folder = path.join(root, '.cache/python-confluent')
const libraries = ['confluent-kafka[avro,schemaregistry]==2.16.1']

/** A Python that reads topics and Avro, as the docs tell a reader to have it. Rejects where PyPI cannot be reached. */
export async function pythonWithKafka(): Promise<string> {
  const python = path.join(folder, 'bin/python')
  if (existsSync(path.join(folder, 'complete'))) return python
  await run('python3', ['-m', 'venv', folder])
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...libraries])
  await run('touch', [path.join(folder, 'complete')])
  return python
}
