import { eventTopics } from '../../schemas/events.ts'

/** The log and the read model of everything that is decided about one signup or login, one command at a time. */
export function sessionStream(gateSessionId: string) {
  return {
    topic: eventTopics.GateSessionOpened,
    projection: 'gate',
    key: gateSessionId,
    locks: [`gate-session:${gateSessionId}`],
  }
}

/** The same of one service. */
export function serviceStream(serviceId: string) {
  return {
    topic: eventTopics.GateServiceRegistered,
    projection: 'gate',
    key: serviceId,
    locks: [`gate-service:${serviceId}`],
  }
}

/** For `alsoReads`: what has happened to another session or service, whose state is decided on, too. */
export function seenOf(key: string) {
  return { projection: 'gate', topic: eventTopics.GateSessionOpened, key }
}
