#!/usr/bin/env node
// Uses only syntax that Node 12 supports, so that old versions can print the error below.
const { engines } = require('./package.json')

const needed = engines.node.replace('>=', '')
const found = process.versions.node
const [major, minor] = needed.split('.').map(Number)
const [foundMajor, foundMinor] = found.split('.').map(Number)
if (foundMajor < major || (foundMajor === major && foundMinor < minor)) {
  console.error(
    `tidegate needs Node ${needed} or later and this is Node ${found}. Install a newer Node.js.`,
  )
  process.exitCode = 1
} else {
  import('./program/program.mjs')
}
