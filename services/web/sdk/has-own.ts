const isOwn = Object.prototype.hasOwnProperty

// Stands in for `Object.hasOwn` in the bundle.
export function hasOwn(target: object, name: PropertyKey): boolean {
  return isOwn.call(target, name)
}
