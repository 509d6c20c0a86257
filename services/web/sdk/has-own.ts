const isOwn = Object.prototype.hasOwnProperty

/** Stands in for `Object.hasOwn` in the bundle (build-sdk.ts), because the oldest browsers do not have it. */
export function hasOwn(target: object, name: PropertyKey): boolean {
  return isOwn.call(target, name)
}
