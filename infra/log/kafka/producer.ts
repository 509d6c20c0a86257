import type { Kafka, PartitionerArgs, Producer } from 'kafkajs'

export interface OpenProducer {
  producer: Producer
  /** Disconnects; may be called again. From now on nothing is sent any more, also no retry. */
  end(): Promise<void>
}

/**
 * An idempotent producer that can be stopped. kafkajs goes on with its retries after `disconnect`, connecting again
 * by itself, so a write that was given up could land at any later time. It asks the partitioner before each try.
 */
export async function openProducer(kafka: Kafka): Promise<OpenProducer> {
  let ended = false
  const producer = kafka.producer({
    idempotent: true,
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }: PartitionerArgs) => {
        if (ended) throw givenUp()
        return message.partition ?? unplaced()
      },
  })
  await producer.connect()
  return {
    producer,
    async end() {
      ended = true
      await producer.disconnect()
    },
  }
}

/** An error that kafkajs does not try again after. */
const givenUp = () => Object.assign(new Error('the write was given up'), { retriable: false })

function unplaced(): never {
  throw Object.assign(new Error('a record has no partition'), { retriable: false })
}
