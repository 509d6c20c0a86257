import path from 'node:path'
import { pythonPrograms } from './python-packages.ts'

const libraries = ['confluent-kafka[avro,schemaregistry]==2.16.1']

/** Returns a Python with packages for Kafka and Avro, as described in the docs. */
export const pythonWithKafka = async (): Promise<string> =>
  path.join(await pythonPrograms('python-confluent', libraries), 'python')
