/** Need that this machine cannot provide by any installation. It is reported, but does not fail the run. */
export class CannotBe extends Error {}
