/** What this machine keeps from a test, and no installation would change. It is named, and fails no run. */
export class CannotBe extends Error {}
