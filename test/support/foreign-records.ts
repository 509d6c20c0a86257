/** Values of a program that writes to the wrong topic, and of a later version of this one. */
export const foreignValues = {
  'that no schema wrote': Buffer.from('not ours'),
  'of an unknown schema': Buffer.from([0, 0, 1, 134, 159, 2]),
}
