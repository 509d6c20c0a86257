import path from 'node:path'
import { pythonPrograms } from './python-packages.ts'

const libraries = ['confluent-kafka[avro,schemaregistry]==2.16.1']

/** A Python that reads topics and Avro, as the docs tell a reader to have it. */
export const pythonWithKafka = async (): Promise<string> =>
  path.join(await pythonPrograms('python-confluent', libraries), 'python')
