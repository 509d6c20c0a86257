// Records anew: node test/recorded/record.ts [CHECKOUT [FILE]]
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { answersFile, print } from './answers.ts'
import { examplesFile, examplesOf } from './examples.ts'
import { playScenario } from './scenario.ts'

const [checkout = path.resolve(import.meta.dirname, '../..'), file = answersFile] =
  process.argv.slice(2)
const recorded = await playScenario(path.resolve(checkout))
await writeFile(file, print(recorded))
if (file === answersFile) await writeFile(examplesFile, print(examplesOf(recorded)))
console.log(`${recorded.length} answers of ${checkout} in ${file}`)
