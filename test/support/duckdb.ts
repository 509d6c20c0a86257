import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { root } from './test-projects.ts'

const run = promisify(execFile)
const folder = path.join(root, '.cache/python-duckdb')

/** A Python with DuckDB. Rejects where PyPI cannot be reached. */
export async function pythonWithDuckDb(): Promise<string> {
  const python = path.join(folder, 'bin/python')
  if (existsSync(path.join(folder, 'complete'))) return python
  await run('python3', ['-m', 'venv', folder])
  await run(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'duckdb==1.4.2'])
  await run('touch', [path.join(folder, 'complete')])
  return python
}

const program = 'import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall(), default=str))'

/** The rows that a query gives, each as an array. */
export async function duckDb<Row extends unknown[]>(sql: string): Promise<Row[]> {
  const { stdout } = await run(await pythonWithDuckDb(), ['-c', program, sql], { maxBuffer: 1e9 })
  return JSON.parse(stdout)
}
